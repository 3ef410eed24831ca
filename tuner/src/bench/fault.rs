//! What stops a candidate on a machine, as the log says it.

use codegen::device::DeviceError;

use crate::{
    Failure, Verification,
    log::{ErrorKind, Stage, TrialError},
};

/// The longest message in bytes.
const MAX_MESSAGE_BYTES: usize = 2048;

/// The kinds that the driver's own names say. The first that occurs in the reason counts.
const NAMES: [(&str, ErrorKind); 17] = [
    ("CUDA_ERROR_ILLEGAL_ADDRESS", ErrorKind::IllegalAddress),
    ("CUDA_ERROR_INVALID_ADDRESS_SPACE", ErrorKind::IllegalAddress),
    ("CUDA_ERROR_MISALIGNED_ADDRESS", ErrorKind::Misaligned),
    ("CUDA_ERROR_LAUNCH_FAILED", ErrorKind::Trap),
    ("CUDA_ERROR_ASSERT", ErrorKind::Trap),
    ("CUDA_ERROR_ILLEGAL_INSTRUCTION", ErrorKind::Trap),
    ("CUDA_ERROR_HARDWARE_STACK_ERROR", ErrorKind::Trap),
    ("CUDA_ERROR_INVALID_PC", ErrorKind::Trap),
    ("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", ErrorKind::Resource),
    ("CUDA_ERROR_LAUNCH_TIMEOUT", ErrorKind::Hang),
    ("CUDA_ERROR_OUT_OF_MEMORY", ErrorKind::OutOfMemory),
    ("CUBLAS_STATUS_ALLOC_FAILED", ErrorKind::OutOfMemory),
    ("CUDA_ERROR_ECC_UNCORRECTABLE", ErrorKind::DeviceLost),
    ("CUDA_ERROR_CONTEXT_IS_DESTROYED", ErrorKind::DeviceLost),
    ("CUDA_ERROR_DEINITIALIZED", ErrorKind::DeviceLost),
    ("CUDA_ERROR_NO_DEVICE", ErrorKind::DeviceLost),
    ("CUDA_ERROR_DEVICE_UNAVAILABLE", ErrorKind::DeviceLost),
];

/// What stopped a candidate. Wrong numbers have more to say: [`wrong_numbers`].
pub fn error_of(failure: impl Into<Failure>, stage: Stage) -> TrialError {
    let failure = failure.into();
    let (stage, kind) = match &failure {
        Failure::Device(err) => (stage, kind_of(err, stage)),
        Failure::Buffers { .. } | Failure::NoTime => (stage, ErrorKind::Internal),
        Failure::Wrong | Failure::IllConditioned | Failure::WrongAfterTiming => {
            (Stage::Verify, ErrorKind::WrongResult)
        }
    };
    TrialError { stage, kind, message: shortened(failure.to_string()), sticky: is_sticky(&failure) }
}

/// What is wrong with the numbers of a run, which was one before or after timing.
pub fn wrong_numbers(verdict: &Verification, failure: &Failure) -> TrialError {
    let wrong = verdict.outputs.iter().find(|it| it.wrong > 0);
    let no_number = wrong.is_some_and(|it| it.unwritten + it.nan > 0);
    let kind = if no_number { ErrorKind::Nan } else { ErrorKind::WrongResult };
    let words = wrong.map(|it| format!("{failure}: {}", it.wrong_words()));
    let message = shortened(words.unwrap_or_else(|| failure.to_string()));
    TrialError { stage: Stage::Verify, kind, message, sticky: false }
}

/// Whether no later call of this process can succeed.
pub(super) fn is_sticky(failure: &Failure) -> bool {
    matches!(failure, Failure::Device(DeviceError::Lost { .. } | DeviceError::Hang { .. }))
}

fn kind_of(err: &DeviceError, stage: Stage) -> ErrorKind {
    let compiling = matches!(stage, Stage::Generate | Stage::Compile);
    match err {
        DeviceError::Hang { .. } if compiling => ErrorKind::CompileTimeout,
        DeviceError::Hang { .. } => ErrorKind::Hang,
        DeviceError::Compile { .. } => ErrorKind::Compile,
        DeviceError::Missing { .. } | DeviceError::Broken { .. } | DeviceError::Unsupported(_)
            if compiling =>
        {
            ErrorKind::Compile
        }
        DeviceError::Missing { .. } | DeviceError::Broken { .. } => ErrorKind::DeviceLost,
        // A launch that cannot be is refused before the driver sees it.
        DeviceError::Unsupported(_) => ErrorKind::Resource,
        DeviceError::Call { call, reason } => {
            let named = named(reason).or(call.starts_with("taking ").then_some(ErrorKind::OutOfMemory));
            named.unwrap_or(if compiling { ErrorKind::Compile } else { ErrorKind::Launch })
        }
        DeviceError::Lost { reason, .. } => named(reason).unwrap_or(ErrorKind::DeviceLost),
    }
}

fn named(reason: &str) -> Option<ErrorKind> {
    NAMES.iter().find(|(name, _)| reason.contains(name)).map(|it| it.1)
}

fn shortened(mut text: String) -> String {
    if text.len() > MAX_MESSAGE_BYTES {
        let end = text.floor_char_boundary(MAX_MESSAGE_BYTES - '…'.len_utf8());
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(reason: &str) -> DeviceError {
        DeviceError::Lost { call: "running `k`".to_owned(), reason: reason.to_owned() }
    }

    fn call(call: &str, reason: &str) -> DeviceError {
        DeviceError::Call { call: call.to_owned(), reason: reason.to_owned() }
    }

    #[test]
    fn kinds_go_by_the_names_of_the_driver() {
        let cases = [
            (lost("CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access"), ErrorKind::IllegalAddress),
            (lost("CUDA_ERROR_MISALIGNED_ADDRESS: misaligned address"), ErrorKind::Misaligned),
            (lost("CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure"), ErrorKind::Trap),
            (lost("CUDA_ERROR_ASSERT: device-side assert"), ErrorKind::Trap),
            (lost("CUDA_ERROR_ILLEGAL_INSTRUCTION: x"), ErrorKind::Trap),
            (lost("CUDA_ERROR_LAUNCH_TIMEOUT: x"), ErrorKind::Hang),
            (lost("CUDA_ERROR_ECC_UNCORRECTABLE: x"), ErrorKind::DeviceLost),
            (lost("code 721"), ErrorKind::DeviceLost),
            (
                call("launching `k`", "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES: too many resources"),
                ErrorKind::Resource,
            ),
            (call("launching `k`", "CUDA_ERROR_INVALID_VALUE: invalid argument"), ErrorKind::Launch),
            (call("taking 9 bytes of GPU memory", "CUDA_ERROR_OUT_OF_MEMORY: x"), ErrorKind::OutOfMemory),
            (call("taking 9 bytes of memory", "only 3 bytes are available"), ErrorKind::OutOfMemory),
            (DeviceError::Unsupported("asks for too much".to_owned()), ErrorKind::Resource),
            (DeviceError::Hang { what: "`k`".to_owned(), seconds: 2.0 }, ErrorKind::Hang),
        ];
        for (error, kind) in cases {
            let sticky = matches!(error, DeviceError::Lost { .. } | DeviceError::Hang { .. });
            let words = error.to_string();
            let found = error_of(error, Stage::Run);
            assert_eq!((found.kind, found.sticky, found.stage), (kind, sticky, Stage::Run), "{words}");
            assert_eq!(found.message, words);
        }
    }

    #[test]
    fn compilers_have_kinds_of_their_own() {
        let refused = DeviceError::Compile { compiler: "NVRTC".to_owned(), log: "é".repeat(3000) };
        let found = error_of(refused, Stage::Compile);
        assert_eq!((found.kind, found.sticky), (ErrorKind::Compile, false));
        assert!(found.message.len() <= MAX_MESSAGE_BYTES && found.message.ends_with('…'));
        let hang = DeviceError::Hang { what: "NVRTC".to_owned(), seconds: 60.0 };
        assert_eq!(error_of(hang, Stage::Compile).kind, ErrorKind::CompileTimeout);
        assert_eq!(error_of(call("nvrtcCompileProgram", "x"), Stage::Compile).kind, ErrorKind::Compile);
        assert_eq!(error_of(Failure::NoTime, Stage::Run).kind, ErrorKind::Internal);
    }
}
