//! The name of a bundle: what its functions, its header and its library are called.

use ir::Name;

use crate::{diagnostic::Diagnostic, usage_error::UsageError};

/// Files of bundles, programs that they build, and modules that they use: a file or a crate of that name would take their place.
const OURS: &str = "candle_core core ctypes cudarc early example half kernel launcher main math numpy operator os pathlib re reference run \
    sizes sys tensor_maps test types verify";

/// Keywords of Rust and of Python that are none of C, C++ or CUDA.
const KEYWORDS: &str = "False None Self True abstract as assert async await become box class crate def del dyn elif \
    except final finally fn from gen global impl in is lambda let loop macro match mod move mut nonlocal override pass \
    priv proc_macro pub raise ref self std super trait type unsized use where with yield";

/// Functions of the C library that no kernel is warned of: a function of such a name would be called in its place.
const LIBRARY: &str = "accept access acct alarm aligned_alloc asctime asprintf atexit atof atoi atol atoll basename bcmp bcopy bind brk \
    bsearch btowc bzero chdir chmod chown chroot clearenv clearerr close closedir confstr connect copysign creat \
    crypt ctermid ctime daemon difftime dirname div dlclose dlerror dlopen dlsym dprintf drand48 dup dup2 ecvt \
    endgrent endpwent environ erand48 erf erfc err error errx execl execle execlp execv execve execvp execvpe faccessat fchdir \
    fchmod fchown fclose fcntl fcvt fdatasync fdopen feof ferror fexecve fflush ffs fgetc fgetpos fgets fgetwc fgetws \
    fileno flock flockfile fmemopen fnmatch fork fpathconf fprintf fputc fputs fputwc fputws fread freopen fscanf \
    fseek fseeko fsetpos fstat fsync ftell ftello ftok ftruncate ftw funlockfile fwide fwprintf fwrite fwscanf gcvt \
    getc getchar getcwd getdate getdelim getegid getenv geteuid getgid getgrent getgrgid getgrnam getgroups \
    gethostbyname gethostid gethostname getitimer getline getlogin getopt getpagesize getpass getpeername getpgid \
    getpgrp getpid getppid getpriority getpwent getpwnam getpwuid getrandom getrlimit getrusage gets getservbyname \
    getsid getsockname getsockopt getsubopt gettext gettid gettimeofday getuid getutxent getw getwc getwchar glob \
    globfree gmtime grantpt hcreate hdestroy hsearch htonl htons iconv ilogb imaxabs imaxdiv insque ioctl isalnum \
    isalpha isascii isatty isblank iscntrl isdigit isfinite isgraph isinf islower isnan isnormal isprint ispunct isspace isupper \
    iswalnum isxdigit jrand48 kill killpg labs lchown ldiv lfind link listen llabs lldiv llrint llround localeconv \
    localtime lockf longjmp lrand48 lround lsearch lseek lstat lutimes madvise mblen mbrlen mbrtowc mbstowcs mbtowc memccpy memchr \
    memcmp memmem memmove mkdir mkdtemp mkfifo mknod mkstemp mktemp mktime mlock mmap mount mprotect mrand48 msgget msgrcv msgsnd \
    msync munlock munmap nanosleep nearbyint nextafter nexttoward nftw nice nrand48 ntohl ntohs open openat opendir openlog \
    openpty optarg optind pathconf pause pclose perror pipe poll popen posix_memalign ppoll pread preadv prctl pselect psignal ptrace ptsname \
    putc putchar putenv putw putwc pwrite pwritev qsort quick_exit raise rand random read readdir readlink readv recv recvfrom \
    recvmsg regcomp regerror regexec regfree remove remquo rename rewind rindex rmdir sbrk scanf seed48 seekdir select \
    semctl semget semop send sendfile sendmsg sendto setbuf setegid setenv setgid setjmp setlocale setpgid setsid setsockopt setuid \
    setvbuf shmat shmctl shmdt shmget shutdown sigaction sigaddset siglongjmp signbit sigprocmask sigwait sleep snprintf \
    socket socketpair sprintf srand srandom sscanf stat statfs stime stpcpy strcasecmp strcat strchr strcmp strcoll strcpy \
    strcspn strdup strerror strfmon strfry strftime strlen strncat strncmp strncpy strndup strnlen strpbrk strptime \
    strrchr strsep strsignal strspn strstr strtod strtof strtok strtol strtold strtoll strtoul strtoull strxfrm swab swapoff swapon \
    swprintf symlink sync syscall sysconf sysinfo syslog system tcgetattr tcsetattr tdelete tempnam tfind timegm timer_create times tmpfile \
    tmpnam toascii tolower toupper towlower towupper truncate tsearch ttyname tzset ualarm umask umount uname ungetc \
    unlink unlockpt unsetenv usleep utime utimes vasprintf vfork vfprintf vfscanf vprintf vscanf vsnprintf vsprintf vsscanf wait wait3 \
    waitid waitpid warn warnx wcscpy wcslen wcstombs wctomb wmemcpy write writev";

/// The name of a bundle: `given`, if it can name functions, files and a crate; else `tilewright_` and the workload's.
///
/// # Errors
/// [`UsageError::BundleName`] for what is no identifier, or is a name of something else.
pub(super) fn of(given: Option<&str>, workload: &Name) -> Result<String, Diagnostic> {
    let Some(text) = given else { return Ok(format!("tilewright_{workload}")) };
    let refuse = |why: &str| {
        let title = format!("a bundle cannot be called `{text}`: {why}");
        let help = format!(
            "functions, files and a crate are named so; `tilewright_{workload}` is what they are called otherwise"
        );
        Err(Diagnostic::usage(UsageError::BundleName, title).help(help))
    };
    let name = Name::new(text);
    let is_in = |words: &str| words.split_whitespace().any(|it| it == text);
    if !name.is_valid() {
        refuse("a name is a letter, then letters, digits and `_`, 64 at most")
    } else if text.starts_with('_') || text.ends_with('_') {
        refuse("a name neither begins nor ends with `_`")
    } else if is_in(OURS) {
        refuse("a file of the bundle, or a module that it uses, is called so")
    } else if is_in(KEYWORDS) || ir::is_reserved(text) {
        refuse("that is a word of C, C++, CUDA, Rust or Python, or of tilewright's")
    } else if is_in(LIBRARY) || codegen::emit::symbol(&name) != text {
        refuse("the C library has a function of that name")
    } else {
        Ok(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_something_else_are_refused() {
        let refused = "a-b 1a _a a_ int lambda fn class tw_x read printf expf sin main numpy cudarc blockIdx NULL INT32_MAX";
        for it in refused.split_whitespace().chain(["", "ä", "a b", "a\nb", &"a".repeat(65)]) {
            assert!(of(Some(it), &Name::new("matmul")).is_err(), "{it:?}");
        }
        for it in ["matmul", "tilewright_matmul", "gemm_512", "A", &"a".repeat(64)] {
            assert_eq!(of(Some(it), &Name::new("matmul")).ok().as_deref(), Some(it));
        }
        assert_eq!(of(None, &Name::new("matmul")).ok().as_deref(), Some("tilewright_matmul"));
    }
}
