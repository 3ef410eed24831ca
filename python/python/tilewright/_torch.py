"""What is about PyTorch. It is imported once a program that has imported PyTorch calls a kernel, or asks for an operator."""

import torch

try:
    # What every launch asks for: the public way makes an object around the same number.
    from torch._C import _cuda_getCurrentRawStream as current_stream
except ImportError:

    def current_stream(ordinal):
        """The handle of the stream that is current on a GPU."""
        return torch.cuda.current_stream(ordinal).cuda_stream


_DTYPES = {}


def _dtype(name):
    found = _DTYPES.get(name)
    if found is None:
        found = _DTYPES[name] = getattr(torch, name)
    return found


def empty(like, shape, dtype):
    """Memory for a result beside a tensor."""
    return torch.empty(shape, dtype=_dtype(dtype), device=like.device)


_TORCH_NAMES = {
    "bool": "bool",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
    "u16": "uint16",
    "u32": "uint32",
    "f16": "float16",
    "bf16": "bfloat16",
    "f8e4m3": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2",
    "f8e8m0": "float8_e8m0fnu",
    "tf32": "float32",
    "f32": "float32",
    "f64": "float64",
}


def _shapes(kernel, arrays):
    """The extents of the results, symbolic where those of the inputs are: a name is an extent of some input, and a sum or a product
    of several is computed from numbers."""
    known = {}
    for parameter, array in zip(kernel.inputs, arrays):
        for name, extent in zip(parameter.shape, array.shape):
            known.setdefault(name, extent)
    wanted = [it.shape for it in kernel.outputs]
    if all(isinstance(it, int) or it in known for shape in wanted for it in shape):
        return [[it if isinstance(it, int) else known[it] for it in shape] for shape in wanted]
    return kernel.output_shapes(*([int(it) for it in array.shape] for array in arrays))


def register(kernel, name, backward):
    """Registers a kernel as the operator ``namespace::name``, with what the compiler of PyTorch asks: the extents of results
    without computing them. ``backward`` is called with the gradients of the results and then the inputs, and returns the gradients of the inputs."""
    outputs = kernel.outputs
    dtypes = [_dtype(_TORCH_NAMES[it.dtype]) for it in outputs]
    arguments = ", ".join(f"Tensor {it.name}" for it in kernel.inputs)
    results = "Tensor" if len(outputs) == 1 else "(" + ", ".join(["Tensor"] * len(outputs)) + ")"

    def run(*arrays):
        return kernel(*(it.contiguous() for it in arrays))

    def fake(*arrays):
        shapes = _shapes(kernel, arrays)
        like = arrays[0]
        made = [like.new_empty(shape, dtype=dtype) for shape, dtype in zip(shapes, dtypes)]
        return made[0] if len(made) == 1 else tuple(made)

    op = torch.library.custom_op(name, run, mutates_args=(), schema=f"({arguments}) -> {results}")
    op.register_fake(fake)
    if backward is not None:

        def differentiate(ctx, *gradients):
            found = backward(*gradients, *ctx.saved_tensors)
            return tuple(found) if isinstance(found, (tuple, list)) else (found,)

        def keep(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        op.register_autograd(differentiate, setup_context=keep)
    return op
