//! The roofline: what the machine allows at each intensity, and how near to it the trials come.

use tuner::{Regime, log::Run};

use super::{
    figure::Figure,
    plot::{Anchor, LabelPosition, Scale, Svg, Taken, bottom_axis, left_axis},
    progress::dot_title,
    view::View,
    words::{bytes, gflops, percent},
};

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 68.0;
const RIGHT: f64 = WIDTH - 62.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = HEIGHT - 52.0;

/// The limits of a machine: GFLOPS, and GFLOPS for each operation a byte.
struct Roofs {
    compute: Option<f64>,
    memory: Option<f64>,
}

impl Roofs {
    fn of(head: &Run) -> Roofs {
        let compute = head.roofline.compute.map(|it| head.workload.flops / it / 1e9);
        let usable = |it: &f64| *it > 0.0 && *it < 1e13;
        Roofs { compute: compute.filter(usable), memory: head.machine.peak_gb_per_s.filter(usable) }
    }

    fn at(&self, intensity: f64) -> f64 {
        let memory = self.memory.map_or(f64::MAX, |it| it * intensity);
        self.compute.unwrap_or(f64::MAX).min(memory)
    }
}

pub(super) fn draw(view: &View<'_>) -> Option<Figure> {
    let head = view.head?;
    let intensity = head.workload.flops / head.workload.bytes;
    let roofs = Roofs::of(head);
    if !(intensity > 1e-9 && intensity < 1e9) || (roofs.compute.is_none() && roofs.memory.is_none()) {
        return None;
    }
    let points = view.points();
    let ridge = roofs.compute.zip(roofs.memory).map_or(intensity, |(compute, memory)| compute / memory);
    let values =
        points.iter().map(|it| it.speed).chain(view.library().map(|it| it.1)).map(|it| view.gflops(it));
    let lowest = values.clone().fold(f64::MAX, f64::min).min(roofs.at(intensity) / 30.0);
    let top = values.fold(roofs.compute.unwrap_or(0.0), f64::max).max(roofs.at(intensity));
    let far = (intensity.min(ridge) / 8.0, intensity.max(ridge) * 6.0);
    let x = Scale::log(far, (LEFT, RIGHT));
    let y = Scale::log((lowest.max(top / 1e6) / 1.5, top * 2.0), (BOTTOM, TOP));
    let mut svg = Svg::new(WIDTH, HEIGHT, "GFLOPS over operations per byte, with the limits of the machine");
    left_axis(&mut svg, &y, (LEFT, RIGHT), 6);
    bottom_axis(&mut svg, &x, BOTTOM, Some(TOP), &x.ticks(8));
    svg.line((LEFT, BOTTOM), (RIGHT, BOTTOM), "axis");
    svg.text((LEFT - 8.0, 18.0), Anchor::End, "name", "GFLOPS");
    let name = "operations per byte of inputs and outputs";
    svg.text((f64::midpoint(LEFT, RIGHT), HEIGHT - 8.0), Anchor::Middle, "name", name);
    let mut taken = Taken::default();
    roof_lines(&mut svg, &mut taken, &roofs, &x, &y);
    let at = x.at(intensity);
    svg.line((at, BOTTOM), (at, y.clamped(roofs.at(intensity))), "intensity");
    // All trials do the same work and so stand at the same place: a short line across it for each.
    let mut places: Vec<_> = points.iter().map(|it| (at - 9.0, y.clamped(view.gflops(it.speed)))).collect();
    for it in &mut places {
        it.1 = (it.1 * 2.0).round() / 2.0;
    }
    places.sort_by(|a, b| a.1.total_cmp(&b.1));
    places.dedup();
    svg.marks(&places, "h18", "rug");
    marks(&mut svg, &mut taken, view, at, &y);
    Some(Figure::new("The roofline", svg.finish()).caption(caption(head, &roofs, intensity)))
}

fn roof_lines(svg: &mut Svg, taken: &mut Taken, roofs: &Roofs, x: &Scale, y: &Scale) {
    // The memory roof enters at the left edge or at the floor, and ends at the ridge or at the edge of the chart.
    if let Some(memory) = roofs.memory {
        let start = x.low.max(y.low / memory);
        let end = x.high.min(roofs.compute.map_or(y.high, |it| it.min(y.high)) / memory);
        if end > start {
            let (from, to) = ((x.at(start), y.at(memory * start)), (x.at(end), y.at(memory * end)));
            svg.line(from, to, "roof");
            let angle = (to.1 - from.1).atan2(to.0 - from.0).to_degrees();
            let middle = (from.0 + (to.0 - from.0) * 0.45 - 6.0, from.1 + (to.1 - from.1) * 0.45 - 8.0);
            let word = format!("memory: {} GB/s", gflops(memory));
            svg.turned(middle, angle, Anchor::Middle, "halo roof-word", &word);
            taken.turned(middle, angle, &word);
        }
    }
    if let Some(compute) = roofs.compute {
        let start = roofs.memory.map_or(x.low, |it| (compute / it).max(x.low));
        let at = y.at(compute);
        svg.line((x.at(start), at), (x.end, at), "roof");
        let word = format!("compute: {} GFLOPS", gflops(compute));
        let positions = [-8.0, 18.0, -26.0].map(|off| ((x.end, at + off), Anchor::End));
        write(svg, taken, "halo roof-word", &word, positions);
    }
}

/// The best and the library, with words beside them where there is room.
fn marks(svg: &mut Svg, taken: &mut Taken, view: &View<'_>, at: f64, y: &Scale) {
    let library = view.library().map(|(name, it)| (name, view.gflops(it)));
    let speed = view.best().map(|it| view.speed_of(it));
    let heights = [library.map(|it| it.1), speed.map(|it| view.gflops(it))].into_iter().flatten();
    heights.for_each(|it| taken.mark((at, y.clamped(it)), 8.0));
    let is_right = at < f64::midpoint(LEFT, RIGHT) + 120.0;
    if let Some((name, it)) = library {
        let height = y.clamped(it);
        svg.marks(&[(at, height - 6.0)], "l6 6l-6 6l-6 -6z", "library-mark");
        let word = format!("{}: {}", crate::term::markup::shortened(name, 24), gflops(it));
        write(svg, taken, "halo library-word", &word, beside(at, height, !is_right));
    }
    let Some(speed) = speed else { return };
    let title = view.winner().map_or("the winner".to_owned(), |it| dot_title(view, it, speed));
    let best = view.gflops(speed);
    let height = y.clamped(best);
    svg.circle((at, height), 5.0, "best", &title);
    let part = view.roof().map(|it| format!(", {} of the roofline", percent(speed / it.0)));
    let word = format!("winner: {}{}", gflops(best), part.unwrap_or_default());
    write(svg, taken, "halo best-word", &word, beside(at, height, is_right));
}

/// Where the word of a mark may stand: beside it, on one side rather than on the other, or a line or more higher or lower.
fn beside(at: f64, height: f64, is_right: bool) -> impl Iterator<Item = LabelPosition> {
    let side =
        move |is_right: bool| if is_right { (at + 14.0, Anchor::Start) } else { (at - 14.0, Anchor::End) };
    [0.0, -18.0, 18.0, -36.0, 36.0, -54.0, 54.0, -72.0, 72.0].into_iter().flat_map(move |off| {
        [is_right, !is_right].map(side).map(|(x, anchor)| ((x, height + 4.5 + off), anchor))
    })
}

/// Writes a word where no other stands.
fn write(
    svg: &mut Svg,
    taken: &mut Taken,
    class: &str,
    word: &str,
    positions: impl IntoIterator<Item = LabelPosition>,
) {
    if let Some((place, anchor)) = taken.place(word, [LEFT, 4.0, WIDTH, BOTTOM - 2.0], positions) {
        svg.text(place, anchor, class, word);
    }
}

fn caption(head: &Run, roofs: &Roofs, intensity: f64) -> String {
    let axes = format!(
        "Both axes are logarithmic. The intensity, {} operations per byte, is that of the workload: its inputs and outputs \
         moved once each. It is not measured traffic, so every trial stands at the same place; each short line is one.",
        gflops(intensity)
    );
    let stays =
        head.measure.regime != Regime::ColdL2 && head.machine.cache_bytes > 0 && roofs.memory.is_some();
    let caches = if stays {
        format!(
            " Caches of {} keep their data between calls, so a trial may lie above the memory roof; the roofline that \
             percentages are of counts only what cannot stay in them.",
            bytes(head.machine.cache_bytes as f64)
        )
    } else {
        String::new()
    };
    let unknown = match (roofs.compute, roofs.memory) {
        (None, _) => " The arithmetic limit of the machine is not known for these types.",
        (_, None) => " The bandwidth of the machine is not known.",
        (Some(_), Some(_)) => "",
    };
    format!("{axes}{caches}{unknown}")
}
