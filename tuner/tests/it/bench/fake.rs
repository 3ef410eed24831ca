//! A machine whose clock and faults are written down, and the matrix product that it runs.

use std::{cell::RefCell, rc::Rc, sync::Arc};

use codegen::device::{BufferId, DeviceError, Gemm, Launch, Machine, MachineInfo, Program, ProgramId};
use indexmap::IndexMap;
use ir::{
    Access, BinaryOp, Block, BlockAttrs, Buffer, DType, Func, Index, InterpError, Iter, IterKind, Layout,
    Literal, Name, Role, Scope, Stmt, Value, number::decode, reference::Near,
};
use tilewright_tuner::{Case, Oracle, Tensor};

/// What a fake program does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum Does {
    Right,
    /// Leaves the last element as it was.
    ForgetsLast,
    /// Leaves one element in the middle of a large output as it was.
    ForgetsMiddle,
    /// Drops the last of the products.
    DropsProduct,
    /// Writes a NaN in the middle.
    Nan,
    /// Is right for the first runs and wrong later.
    WrongLater,
    /// Loads code for half a second in its first run.
    LoadsFirst,
    /// Takes up to a fifth longer, now so and now so.
    Noisy,
    /// Fails to run.
    Crashes,
    /// Is right, and overwrites its first input.
    SpoilsInput,
    /// Reads where it must not: the machine is lost.
    Strays,
    /// Does not end.
    Hangs,
}

/// A program that takes `seconds` a call.
pub(crate) fn program(case: &Case, does: Does, seconds: f64) -> Program {
    let sizes = case.inputs().values().map(|it| it.bytes.len()).collect::<Vec<_>>();
    let (m, n) = (case.dims["m"], case.dims["n"]);
    let buffers = vec![sizes[0], sizes[1], usize::try_from(m * n * 4).unwrap()];
    let launch = Launch {
        kernel: "fake".to_owned(),
        grid: [1; 3],
        block: [1; 3],
        shared_bytes: 0,
        maps: vec![],
        programmatic: false,
        buffers: vec![0, 1, 2],
        dims: vec![m, n, case.dims["k"]],
    };
    Program {
        binary: serde_json::to_vec(&(does, seconds)).unwrap(),
        launches: vec![launch],
        buffers,
        zeroed: vec![],
    }
}

/// Shared with the test, which looks at it while the machine is lent out.
pub(crate) type Runs = Rc<RefCell<Vec<Option<(u32, u32)>>>>;

/// What a program does, its seconds a call, its sizes, and how often it ran.
type Loaded = (Does, f64, [usize; 3], u32);

pub(crate) struct Fake {
    info: MachineInfo,
    pub(crate) memory: Vec<Option<Vec<u8>>>,
    programs: Vec<Option<Loaded>>,
    /// The programs in the order they ran, each with its number of calls; `None` is a flush.
    pub(crate) runs: Runs,
    pub(crate) has_library: bool,
    /// Seconds a call of each of the library's ways, its own first choice first.
    pub(crate) choices: Vec<f64>,
    /// The clock after so many runs, the last of which was of this program.
    pub(crate) clock: fn(usize, u32) -> Option<f64>,
    deadline: Option<f64>,
    /// Whether a program strayed or hung: nothing may be touched afterwards.
    lost: bool,
}

impl Fake {
    pub(crate) fn new(peak_gflops: f64) -> Fake {
        let info = MachineInfo {
            name: "fake".to_owned(),
            arch: "cpu".to_owned(),
            units: 4,
            peak_f32_gflops: Some(peak_gflops),
            peak_gb_per_s: Some(100.0),
            cache_bytes: 1 << 20,
            id: None,
            versions: vec![("fake".to_owned(), "1".to_owned())],
        };
        Fake {
            info,
            memory: vec![],
            programs: vec![],
            runs: Rc::default(),
            has_library: true,
            choices: vec![1e-3],
            clock: |_, _| None,
            deadline: None,
            lost: false,
        }
    }

    pub(crate) fn programs_loaded(&self) -> usize {
        self.programs.iter().flatten().count()
    }

    fn push(&mut self, does: Does, seconds: f64, dims: [usize; 3]) -> ProgramId {
        self.programs.push(Some((does, seconds, dims, 0)));
        ProgramId(u32::try_from(self.programs.len() - 1).unwrap())
    }

    pub(crate) fn bytes_in_use(&self) -> usize {
        self.memory.iter().flatten().map(Vec::len).sum()
    }

    fn bytes(&mut self, buffer: BufferId) -> &mut Vec<u8> {
        assert!(!self.lost, "touched after it was lost");
        self.memory[buffer.0 as usize].as_mut().expect("the buffer was not freed")
    }

    fn multiply(&mut self, [m, n, k]: [usize; 3], does: Does, nth: u32, buffers: &[BufferId]) {
        let load = |bytes: &[u8]| bytes.chunks(4).map(|it| decode(DType::F32, it)).collect::<Vec<_>>();
        let (a, b) = (load(self.bytes(buffers[0])), load(self.bytes(buffers[1])));
        let out = self.bytes(buffers[2]);
        let late = does == Does::WrongLater && nth > 3;
        for at in 0..m * n {
            let (i, j) = (at / n, at % n);
            let steps = if does == Does::DropsProduct || late { k - 1 } else { k };
            let mut sum = 0f32;
            for p in 0..steps {
                let (x, y) = (a[i * k + p] as f32, b[p * n + j] as f32);
                sum += x * y;
            }
            let middle = m * n / 2 + 1;
            match does {
                Does::ForgetsLast if at + 1 == m * n => continue,
                Does::ForgetsMiddle if at == middle => continue,
                Does::Nan if at == middle => sum = f32::NAN,
                _ => {}
            }
            out[at * 4..][..4].copy_from_slice(&sum.to_le_bytes());
        }
    }
}

impl Fake {
    fn failure(&mut self, does: Does) -> Option<DeviceError> {
        match does {
            Does::Crashes => Some(DeviceError::Call {
                call: "fakeLaunch".to_owned(),
                reason: "illegal address".to_owned(),
            }),
            Does::Strays => {
                self.lost = true;
                let reason = "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal address was accessed".to_owned();
                Some(DeviceError::Lost { call: "running `fake`".to_owned(), reason })
            }
            Does::Hangs => {
                self.lost = true;
                let seconds = self.deadline.expect("somebody set a deadline");
                Some(DeviceError::Hang { what: "`fake`".to_owned(), seconds })
            }
            _ => None,
        }
    }
}

impl Machine for Fake {
    fn info(&self) -> &MachineInfo {
        &self.info
    }

    fn load(&mut self, program: &Program) -> Result<ProgramId, DeviceError> {
        let (does, seconds) = serde_json::from_slice(&program.binary).unwrap();
        let dims = &program.launches[0].dims;
        let dims = [dims[0], dims[1], dims[2]].map(|it| usize::try_from(it).unwrap());
        Ok(self.push(does, seconds, dims))
    }

    fn load_gemm(&mut self, gemm: &Gemm) -> Result<ProgramId, DeviceError> {
        if !self.has_library {
            return Err(DeviceError::Missing { what: "the library".to_owned(), help: String::new() });
        }
        assert_eq!((gemm.batch, gemm.b_transposed), (1, false));
        Ok(self.push(Does::Right, self.choices[0], [gemm.m, gemm.n, gemm.k]))
    }

    fn alloc(&mut self, bytes: usize) -> Result<BufferId, DeviceError> {
        self.memory.push(Some(vec![0; bytes]));
        Ok(BufferId(u32::try_from(self.memory.len() - 1).unwrap()))
    }

    fn free(&mut self, buffer: BufferId) {
        assert!(!self.lost, "touched after it was lost");
        assert!(self.memory[buffer.0 as usize].take().is_some(), "freed twice");
    }

    fn upload(&mut self, buffer: BufferId, bytes: &[u8]) -> Result<(), DeviceError> {
        self.bytes(buffer)[..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn download(&mut self, buffer: BufferId, bytes: &mut [u8]) -> Result<(), DeviceError> {
        let from = self.bytes(buffer);
        bytes.copy_from_slice(&from[..bytes.len()]);
        Ok(())
    }

    fn run(&mut self, id: ProgramId, buffers: &[BufferId], calls: u32) -> Result<f64, DeviceError> {
        assert!(!self.lost, "touched after it was lost");
        let program = self.programs[id.0 as usize].as_mut().expect("the program was not unloaded");
        let (does, seconds, dims, ran) = *program;
        program.3 += 1;
        self.runs.borrow_mut().push(Some((id.0, calls)));
        if let Some(err) = self.failure(does) {
            return Err(err);
        }
        self.multiply(dims, does, ran, buffers);
        if does == Does::SpoilsInput {
            self.bytes(buffers[0]).fill(0);
        }
        // The clock drifts: whoever runs later in a round is slower, so that a fixed order would show.
        let drift = 1.0 + 1e-3 * (self.runs.borrow().len() % 7) as f64;
        let loading = if does == Does::LoadsFirst && ran == 0 { 0.5 } else { 0.0 };
        let noise = if does == Does::Noisy { f64::from(ran * 37 % 11) / 50.0 } else { 0.0 };
        Ok(seconds * f64::from(calls) * (drift + noise) + loading)
    }

    fn flush_cache(&mut self) -> Result<(), DeviceError> {
        self.runs.borrow_mut().push(None);
        Ok(())
    }

    fn set_threads(&mut self, _threads: usize) {}

    fn set_deadline(&mut self, seconds: Option<f64>) {
        self.deadline = seconds;
    }

    fn clock_mhz(&mut self) -> Option<f64> {
        assert!(!self.lost, "touched after it was lost");
        let runs = self.runs.borrow();
        let last = runs.iter().rev().flatten().next().map_or(0, |it| it.0);
        (self.clock)(runs.len(), last)
    }

    fn load_gemm_choices(&mut self, gemm: &Gemm, most: usize) -> Result<Vec<ProgramId>, DeviceError> {
        let first = self.load_gemm(gemm)?;
        let others: Vec<f64> = self.choices.iter().take(most).skip(1).copied().collect();
        let others = others.into_iter().map(|it| self.push(Does::Right, it, [gemm.m, gemm.n, gemm.k]));
        Ok([first].into_iter().chain(others).collect())
    }

    fn unload(&mut self, program: ProgramId) {
        assert!(!self.lost, "touched after it was lost");
        assert!(self.programs[program.0 as usize].take().is_some(), "unloaded twice");
    }
}

/// The right product, by the formula.
pub(crate) struct Formula {
    pub(crate) a: Tensor,
    pub(crate) b: Tensor,
}

impl Formula {
    pub(crate) fn of(inputs: &IndexMap<Name, Tensor>) -> Formula {
        Formula { a: inputs["A"].clone(), b: inputs["B"].clone() }
    }
}

impl Formula {
    /// An element, and four standard deviations of a random walk of roundings.
    pub(crate) fn element(&self, at: &[i64]) -> Near {
        let (k, n) = (self.b.shape[0], self.b.shape[1]);
        let (i, j) = (usize::try_from(at[0]).unwrap(), usize::try_from(at[1]).unwrap());
        let terms = (0..k).map(|p| self.a.get(i * k + p) * self.b.get(p * n + j));
        let (value, squares) = terms.fold((0.0, 0.0), |(sum, squares), it| (sum + it, squares + it * it));
        Near::within(value, 4.0 * (k as f64 * squares).sqrt() * 2f64.powi(-24) * 4.0)
    }
}

impl Oracle for Formula {
    fn elements(&mut self, buffer: &Name, places: &[Vec<i64>]) -> Result<Vec<Option<Near>>, InterpError> {
        assert_eq!(buffer.as_str(), "C");
        Ok(places.iter().map(|at| Some(self.element(at))).collect())
    }
}

/// `C[i, j] += A[i, k] * B[k, j]` in f32.
pub(crate) fn matmul(m: i64, n: i64, k: i64, seed: u64) -> Case {
    let dims: IndexMap<Name, i64> =
        [("m", m), ("n", n), ("k", k)].map(|(name, it)| (Name::new(name), it)).into();
    let var = |name: &str| Index::var(&Name::new(name));
    let buffer = |shape: [&str; 2], role| Buffer {
        dtype: DType::F32,
        shape: shape.iter().map(|it| var(it)).collect(),
        scope: Scope::Global,
        role,
        layout: Layout::default(),
        alloc_scope: None,
        below: None,
    };
    let buffers = [
        (Name::new("A"), buffer(["m", "k"], Role::Input)),
        (Name::new("B"), buffer(["k", "n"], Role::Input)),
        (Name::new("C"), buffer(["m", "n"], Role::Output)),
    ];
    let load =
        |name: &str, at: [&str; 2]| Value::load(&Name::new(name), at.iter().map(|it| var(it)).collect());
    let place = Access::new(&Name::new("C"), vec![var("vi"), var("vj")]);
    let product = Value::binary(BinaryOp::Mul, load("A", ["vi", "vk"]), load("B", ["vk", "vj"]));
    let sum = Value::binary(BinaryOp::Add, Value::Load(place.clone()), product);
    let iter = |var: &str, extent: &str, kind, binding: &str| {
        Iter::new(&Name::new(var), Index::var(&Name::new(extent)), kind, Index::var(&Name::new(binding)))
    };
    let block = Block {
        name: Name::new("C_block"),
        iters: vec![
            iter("vi", "m", IterKind::Spatial, "i"),
            iter("vj", "n", IterKind::Spatial, "j"),
            iter("vk", "k", IterKind::Reduce, "kk"),
        ],
        guards: vec![],
        attrs: BlockAttrs::default(),
        init: Some(Stmt::store(place.clone(), Value::Const(Literal::zero(DType::F32)))),
        body: Stmt::store(place, sum),
    };
    let loops = [("kk", "k"), ("j", "n"), ("i", "m")];
    let body = loops.iter().fold(Stmt::Block(Arc::new(block)), |body, (name, extent)| {
        Stmt::serial(&Name::new(*name), var(extent), body)
    });
    let func = Func {
        name: Name::new("matmul"),
        dims: dims.keys().cloned().collect(),
        tolerance: None,
        buffers: buffers.into_iter().collect(),
        mbarriers: IndexMap::new(),
        body,
    };
    Case::new(func, dims, seed).expect("the sizes are sound")
}
