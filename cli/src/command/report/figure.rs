//! A chart on the page: its title, what its signs mean, and what one sees.

use std::fmt::Write;

use crate::term::markup::escaped;

/// A chart with its words.
pub(super) struct Figure {
    title: String,
    chart: String,
    caption: String,
    legend: Vec<(&'static str, String)>,
    class: &'static str,
}

impl Figure {
    /// Of a drawing, whose texts are escaped already.
    pub(super) fn new(title: impl Into<String>, chart: String) -> Figure {
        Figure { title: title.into(), chart, caption: String::new(), legend: vec![], class: "" }
    }

    pub(super) fn caption(self, caption: String) -> Figure {
        Figure { caption, ..self }
    }

    /// What signs mean: the class of the sign, and words.
    pub(super) fn legend(self, legend: Vec<(&'static str, String)>) -> Figure {
        Figure { legend, ..self }
    }

    /// Of a class of the style sheet.
    pub(super) fn class(self, class: &'static str) -> Figure {
        Figure { class, ..self }
    }

    pub(super) fn html(&self) -> String {
        let class = if self.class.is_empty() { String::new() } else { format!(" class=\"{}\"", self.class) };
        let mut out = format!("<figure{class}>\n<h3>{}</h3>\n", escaped(&self.title));
        if !self.legend.is_empty() {
            out += "<ul class=\"legend\">";
            for (sign, words) in &self.legend {
                let _ = write!(out, "<li><i class=\"{sign}\"></i>{}</li>", escaped(words));
            }
            out += "</ul>\n";
        }
        out += &self.chart;
        if !self.caption.is_empty() {
            let _ = writeln!(out, "<figcaption>{}</figcaption>", escaped(&self.caption));
        }
        out + "</figure>\n"
    }
}
