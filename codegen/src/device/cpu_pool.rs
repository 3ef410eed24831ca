//! The threads that run parallel loops of CPU kernels.

#![expect(unsafe_code, reason = "C calls back into Rust, and Rust into C")]

use std::{
    ffi::c_void,
    mem, process, ptr,
    sync::{Arc, Mutex, PoisonError},
};

use rayon::{
    ThreadPool, ThreadPoolBuilder,
    iter::{IndexedParallelIterator as _, IntoParallelIterator as _, ParallelIterator as _},
};

use super::{
    DeviceError,
    abi::{Body, Runtime},
};

/// The most threads that a program runs on: more than any processor has, and few enough to be started in a moment.
pub const MOST_THREADS: usize = 1024;

/// A pool of threads, or none at all for one thread.
pub(super) struct Pool {
    pool: Option<ThreadPool>,
    pub(super) threads: usize,
}

impl Pool {
    /// A pool of so many threads, [`MOST_THREADS`] at most; 0 for one a core.
    pub(super) fn new(threads: usize) -> Result<Pool, DeviceError> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = if threads == 0 { cores } else { threads }.min(MOST_THREADS);
        if threads == 1 {
            return Ok(Pool { pool: None, threads });
        }
        let named = ThreadPoolBuilder::new().num_threads(threads).thread_name(|it| format!("kernel-{it}"));
        let pool = named.build().map_err(|err| DeviceError::Call {
            call: format!("starting {threads} threads"),
            reason: err.to_string(),
        })?;
        Ok(Pool { pool: Some(pool), threads })
    }

    /// Runs on one of the pool's threads, so that parallel loops inside start without a hand-over.
    pub(super) fn install<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        match &self.pool {
            Some(pool) => pool.install(work),
            None => work(),
        }
    }

    /// What kernels get. Valid while the pool is.
    pub(super) fn runtime(&self) -> Runtime {
        let pool = self.pool.as_ref().map_or(ptr::null(), ptr::from_ref);
        Runtime { parallel, pool: pool.cast() }
    }
}

/// The pools that callers of one process share, and the process that they are of.
struct Shared {
    process: u32,
    pools: Vec<(usize, Arc<Pool>)>,
}

static SHARED: Mutex<Shared> = Mutex::new(Shared { process: 0, pools: vec![] });

/// The pool of so many threads that all callers share, 0 for one a core.
pub(super) fn shared(threads: usize) -> Result<Arc<Pool>, DeviceError> {
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if shared.process != process::id() {
        // Threads do not come along when a process forks: what is left of their pools is never touched again.
        mem::forget(mem::take(&mut shared.pools));
        shared.process = process::id();
    }
    if let Some((_, pool)) = shared.pools.iter().find(|it| it.0 == threads) {
        return Ok(Arc::clone(pool));
    }
    let pool = Arc::new(Pool::new(threads)?);
    shared.pools.push((threads, Arc::clone(&pool)));
    Ok(pool)
}

/// `tw_runtime.parallel`. A panic in here (there is none to expect: the bodies are C) aborts, since the function is
/// `extern "C"`.
unsafe extern "C" fn parallel(rt: *const Runtime, n: i64, body: Body, ctx: *mut c_void) {
    // SAFETY: `rt` is what the machine passed to the kernel, which passes it on untouched; the pool outlives the run.
    let pool = unsafe { (*rt).pool.cast::<ThreadPool>().as_ref() };
    let ctx = Ctx(ctx);
    // SAFETY: the kernel made `body` and `ctx` for each other and for concurrent calls with different numbers.
    let call = |i: i64| unsafe { body(ctx.get(), i) };
    match pool {
        Some(pool) if n > 1 => pool.install(|| {
            let count = usize::try_from(n).expect("a positive i64 fits 64 bits");
            // Single iterations, as they are tiles of work; more only where there are very many.
            let most = (count / (64 * pool.current_num_threads())).max(1);
            let each = |i: usize| call(i64::try_from(i).expect("less than n"));
            (0..count).into_par_iter().with_max_len(most).for_each(each);
        }),
        Some(_) | None => (0..n).for_each(call),
    }
}

/// A kernel's context, which its parallel bodies share.
#[derive(Clone, Copy)]
struct Ctx(*mut c_void);

impl Ctx {
    /// A method, so that closures capture the whole and not the pointer in it.
    fn get(self) -> *mut c_void {
        self.0
    }
}

// SAFETY: emitted bodies only read the context, and write disjoint parts of the buffers it points to.
unsafe impl Send for Ctx {}
// SAFETY: as above.
unsafe impl Sync for Ctx {}
