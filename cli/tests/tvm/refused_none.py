def plain(x):
    return x + 1
