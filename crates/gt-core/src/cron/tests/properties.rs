//! What holds for every schedule, zone and instant.

use proptest::prelude::*;
use proptest::sample::Index;

use super::*;

/// Schedules with everything that can be written.
fn any_text() -> impl Strategy<Value = String> {
    let day =
        prop_oneof![Just("*"), Just("?"), Just("L"), Just("LW,1W"), Just("31W"), Just("L-29"), Just("30"), Just("*/2")];
    let weekday = prop_oneof![Just("*"), Just("friL"), Just("0#5"), Just("1#1,sun"), Just("mon-fri"), Just("*/3")];
    let rare = (0..60_u8, 0..24_u8, day, 1..=12_u8, weekday)
        .prop_map(|(minute, hour, day, month, weekday)| format!("{minute} {hour} {day} {month} {weekday}"));
    prop_oneof![vixie::any_pattern(), rare]
}

/// Mostly the years of our lives, sometimes any that there are.
fn any_instant() -> impl Strategy<Value = Timestamp> {
    let second = prop_oneof![
        4 => 1_700_000_000..2_200_000_000_i64,
        2 => -5_000_000_000..5_000_000_000_i64,
        1 => Timestamp::MIN.as_second()..=Timestamp::MAX.as_second() - 1,
        1 => Just(Timestamp::MIN.as_second()),
        1 => Just(Timestamp::MAX.as_second() - 1),
    ];
    let nano = prop_oneof![Just(0), 0..1_000_000_000_i32];
    (second, nano).prop_map(|(second, nano)| Timestamp::new(second, nano).expect("within bounds"))
}

/// Any zone of the data, at any instant, or a moment before one of its jumps.
fn any_place() -> impl Strategy<Value = (TimeZone, Timestamp)> {
    (any::<Index>(), any_instant(), 0..200_i64, any::<bool>()).prop_map(|(index, at, minutes, is_near)| {
        let data = TimeZoneDatabase::bundled();
        let names: Vec<_> = data.available().collect();
        let zone = zone(index.get(&names).as_str());
        let jump = zone.following(at).next().map(|jump| jump.timestamp() - SignedDuration::from_mins(minutes - 100));
        let at = jump.filter(|_| is_near).unwrap_or(at);
        (zone, at)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn the_next_time_is_the_first_from_wherever_one_asks(text in any_text(), (zone, after) in any_place(), share in 0.0..1.0_f64) {
        let expr = expr(&text);
        if let Some(next) = expr.next(after, &zone) {
            prop_assert!(next > after);
            let between = after + next.duration_since(after).mul_f64(share);
            if between < next {
                prop_assert_eq!(expr.next(between, &zone), Some(next));
            }
            prop_assert_eq!(expr.next(next - SignedDuration::from_nanos(1), &zone), Some(next));
            prop_assert!(expr.next(next, &zone).is_none_or(|later| later > next));
        }
    }

    #[test]
    fn the_next_time_is_named_or_the_end_of_a_gap(text in vixie::any_pattern(), (zone, after) in any_place()) {
        if let Some(next) = expr(&text).next(after, &zone) {
            let before = zone.to_offset(next - SECOND);
            let is_gap_end = zone.to_offset(next) > before;
            let clock = zone.to_datetime(next);
            prop_assert!(is_gap_end || (vixie::names(&text, clock) && clock.second() == 0), "{}", clock);
        }
    }

    #[test]
    fn what_is_shown_reads_back(text in any_text()) {
        prop_assert_eq!(Expr::parse(&expr(&text).to_string()), Ok(expr(&text)));
    }

    #[test]
    fn any_text_is_read_or_refused_in_few_words(text in "[-0-9*/,?LW#a-z@ ]{0,30}|\\PC{0,40}") {
        if let Err(refusal) = Expr::parse(&text) {
            prop_assert!(refusal.to_string().len() < 300);
        }
    }
}
