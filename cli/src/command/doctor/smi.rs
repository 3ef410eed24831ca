//! What `nvidia-smi` tells of GPUs. Each field may be missing: drivers and cards differ in what they know.

use tuner::pool::OnceError;

use super::environment::HostEnvironment;

/// A GPU as `nvidia-smi` sees it.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Card {
    pub(super) uuid: String,
    pub(super) name: String,
    /// In MiB.
    pub(super) memory: Option<u64>,
    pub(super) memory_used: Option<u64>,
    pub(super) ecc_errors: Option<u64>,
    /// In watts.
    pub(super) power_limit: Option<f64>,
    pub(super) power_default: Option<f64>,
    /// In MHz.
    pub(super) clock: Option<u64>,
    pub(super) clock_most: Option<u64>,
    /// Why the clock is below that, a bit each.
    pub(super) reasons: Option<u64>,
    pub(super) temperature: Option<u64>,
    pub(super) compute_mode: Option<String>,
    pub(super) mig: Option<String>,
    /// Who computes on it.
    pub(super) users: Vec<String>,
}

const FIELDS: &str = "uuid,name,memory.total,memory.used,ecc.errors.uncorrected.volatile.total,power.limit,\
     power.default_limit,clocks.sm,clocks.max.sm,clocks_throttle_reasons.active,temperature.gpu,compute_mode,\
     mig.mode.current";

/// Why `nvidia-smi` tells nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Mute {
    /// It is not installed, as in many containers.
    Missing,
    /// It hangs or fails, in words.
    Broken(String),
}

/// All GPUs, in the order of their numbers.
pub(super) fn cards(environment: &dyn HostEnvironment) -> Result<Vec<Card>, Mute> {
    let ask = |query: &str| {
        let said = environment.run(&["nvidia-smi", query, "--format=csv,noheader,nounits"]);
        let said = said.map_err(|err| match err {
            OnceError::Start(_) => Mute::Missing,
            OnceError::Slow(_) => Mute::Broken(err.to_string()),
        })?;
        let words = || said.stdout.lines().next().unwrap_or(&said.status).to_owned();
        if said.success { Ok(said.stdout.clone()) } else { Err(Mute::Broken(words())) }
    };
    let text = ask(&format!("--query-gpu={FIELDS}"))?;
    let mut cards: Vec<Card> = text.lines().filter(|it| !it.trim().is_empty()).map(card).collect();
    // Who computes is worth knowing, but not worth an error.
    let users = ask("--query-compute-apps=gpu_uuid,pid,process_name,used_memory").unwrap_or_default();
    for line in users.lines() {
        let parts: Vec<&str> = line.split(',').map(str::trim).collect();
        let [uuid, pid, name, used] = parts.as_slice() else { continue };
        let words = format!("process {pid} ({name}, {used} MiB)");
        cards.iter_mut().filter(|it| it.uuid == *uuid).for_each(|it| it.users.push(words.clone()));
    }
    Ok(cards)
}

fn card(line: &str) -> Card {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let text = |at: usize| fields.get(at).filter(|it| !it.starts_with('[') && **it != "N/A").copied();
    let number = |at: usize| text(at)?.parse::<f64>().ok();
    #[expect(clippy::cast_possible_truncation, reason = "megabytes and megahertz, and casts saturate")]
    #[expect(clippy::cast_sign_loss, reason = "casts saturate")]
    let whole = |at: usize| number(at).map(|it| it as u64);
    let bits = |at: usize| u64::from_str_radix(text(at)?.strip_prefix("0x")?, 16).ok();
    let word = |at: usize| text(at).map(str::to_owned);
    Card {
        uuid: word(0).unwrap_or_default(),
        name: word(1).unwrap_or_default(),
        memory: whole(2),
        memory_used: whole(3),
        ecc_errors: whole(4),
        power_limit: number(5),
        power_default: number(6),
        clock: whole(7),
        clock_most: whole(8),
        reasons: bits(9),
        temperature: whole(10),
        compute_mode: word(11),
        mig: word(12),
        users: vec![],
    }
}

/// What the bits of [`Card::reasons`] mean, where they mean that the card is slower than it could be.
pub(super) fn slowdowns(reasons: u64) -> Vec<&'static str> {
    let known = [
        (0x4, "its power limit"),
        (0x8, "a slowdown by the hardware"),
        (0x20, "its temperature (by the driver)"),
        (0x40, "its temperature (by the hardware)"),
        (0x80, "its power supply"),
    ];
    known.into_iter().filter(|it| reasons & it.0 != 0).map(|it| it.1).collect()
}
