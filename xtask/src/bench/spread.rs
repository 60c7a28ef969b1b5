//! The median and the range of measurements.

/// The median and the range of at least one measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spread {
    /// The middle value, or the mean of the middle two.
    pub(super) median: f64,
    /// The smallest.
    pub(super) least: f64,
    /// The largest.
    pub(super) most: f64,
}

impl Spread {
    /// Returns the spread of these values, or `None` if there are no values.
    pub(super) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_unstable_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        let half = values.len() / 2;
        let median = if values.len().is_multiple_of(2) {
            f64::midpoint(values[half - 1], values[half])
        } else {
            values[half]
        };
        Some(Self { median, least, most })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(values: &[f64], expected: Option<(f64, f64, f64)>) {
        let expected = expected.map(|(median, least, most)| Spread { median, least, most });
        assert_eq!(Spread::of(values.iter().copied()), expected);
    }

    #[test]
    fn the_median_is_the_middle_of_the_sorted_values() {
        check(&[3.0, 1.0, 2.0], Some((2.0, 1.0, 3.0)));
        check(&[4.0, 1.0, 2.0, 3.0], Some((2.5, 1.0, 4.0)));
        check(&[5.0], Some((5.0, 5.0, 5.0)));
    }

    #[test]
    fn without_values_there_is_no_spread() {
        check(&[], None);
    }
}
