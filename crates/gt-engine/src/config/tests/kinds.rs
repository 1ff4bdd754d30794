//! What each kind takes and refuses, from a command line and from a file.

use super::*;

const COUNT: Kind = Kind::Integer { min: -1, max: 10 };
const SPAN: Kind = Kind::Duration { zero: false };
const DELAY: Kind = Kind::Duration { zero: true };
const LIST: Kind = Kind::TextList { empty: true };
const ARGV: Kind = Kind::TextList { empty: false };
const WORDS: Kind = Kind::Choice(&["tmux", "process"]);

/// Typed text that is taken, and how it is then shown.
const TAKEN: &[(Kind, &str, &str)] = &[
    (COUNT, "-1", "-1"),
    (COUNT, " 10 ", "10"),
    (COUNT, "+3", "3"),
    (Kind::Boolean, "true", "true"),
    (Kind::Boolean, "false", "false"),
    (DELAY, "0s", "0s"),
    (DELAY, "800ms", "800ms"),
    (DELAY, "90s", "90s"),
    (DELAY, "1h 30m", "1h 30m"),
    (DELAY, "1h30m", "1h30m"),
    (DELAY, "2w 3d", "2w 3d"),
    (DELAY, "\"5m\"", "5m"),
    (SPAN, "5 m", "5 m"),
    (Kind::Interval, "1s", "1s"),
    (Kind::Interval, "1000ms", "1000ms"),
    (Kind::Interval, "3660d", "3660d"),
    (Kind::Size, "256 MB", "256 MB"),
    (Kind::Size, "1gib", "1gib"),
    (Kind::Size, "0 B", "0 B"),
    (Kind::Text, "two words", "two words"),
    (Kind::Text, "'quoted'", "quoted"),
    (Kind::Text, "it's", "it's"),
    (Kind::Text, "\"half", "\"half"),
    (WORDS, "tmux", "tmux"),
    (LIST, "[]", "[]"),
    (LIST, "make test", r#"["make test"]"#),
    (LIST, r#"["a","b"]"#, r#"["a","b"]"#),
    (LIST, "[\n 'a', # note\n]", r#"["a"]"#),
    (ARGV, "bash", r#"["bash"]"#),
    (Kind::TextTable, "{}", "{}"),
    (Kind::TextTable, r#"{ A = "x" }"#, r#"{ A = "***" }"#),
    (Kind::TextTable, "A=x=y", r#"{ A = "***" }"#),
    (Kind::AutoOrCount, "auto", "auto"),
    (Kind::AutoOrCount, "1", "1"),
    (Kind::Money, "0", "0"),
    (Kind::Money, "12.50", "12.50"),
    (Kind::Money, "007.5", "7.5"),
    (Kind::ActiveHours, "08:00-22:00", "08:00-22:00"),
    (Kind::ActiveHours, "22:00-06:30", "22:00-06:30"),
    (Kind::ActiveHours, "00:00-24:00", "00:00-24:00"),
    (Kind::TimeZone, "UTC", "UTC"),
    (Kind::TimeZone, "Europe/Berlin", "Europe/Berlin"),
    (Kind::TimeZone, "Etc/GMT+5", "Etc/GMT+5"),
    (Kind::TimeZone, "America/Port-au-Prince", "America/Port-au-Prince"),
    (Kind::Url, "postgres://h/db", "postgres://h/db"),
    (Kind::Url, "postgresql://u@h", "postgresql://u@h"),
    (Kind::Url, "postgres://u:p/@w@h/db", "postgres://u:***@h/db"),
    (Kind::Url, "postgres://h/db?password=x&a=b", "postgres://h/db?password=***&a=b"),
    (Kind::Web, "https://h", "https://h"),
    (Kind::Web, "http://h:8080/", "http://h:8080"),
    (Kind::Web, "https://u:p@h/T0/x?key=y", "https://h/***"),
    (Kind::Secret, "hunter2", "***"),
    (Kind::Secret, "env:", "***"),
    (Kind::Secret, "env:TOKEN", "env:TOKEN"),
    (Kind::Address, "127.0.0.1:7777", "127.0.0.1:7777"),
    (Kind::Address, "[::1]:0", "[::1]:0"),
];

/// Typed text that is refused.
const REFUSED: &[(Kind, &[&str])] = &[
    (COUNT, &["", "-2", "11", "1.5", "x", "0x1", "99999999999999999999", "1 2"]),
    (Kind::Boolean, &["", "yes", "True", "1"]),
    (
        DELAY,
        &["", "5", "0", "m", "-5m", "1.5h", "30m 1h", "1m 1m", "5 parsecs", "5m x", "99999999999999999999s", "40000d"],
    ),
    (SPAN, &["0s", "0h 0m"]),
    (Kind::Interval, &["", "5", "0s", "100ms", "999ms", "3660d 1ms", "100d 1h 1w"]),
    (Kind::Size, &["", "256", "MB", "1.5 GB", "-1 MB", "1 XB", "99999999999 TB", "1 GB x"]),
    (Kind::Text, &["", "  ", "a\nb", "a\0b", "a\u{1b}[31m"]),
    (WORDS, &["", "Tmux", "screen"]),
    (LIST, &["[", "[1]", "[\"a\", 2]", "[\"a\" \"b\"]", "[[\"a\"]]", "a\0b"]),
    (ARGV, &["[]"]),
    (
        Kind::TextTable,
        &["", "A", "{", "{ A = 1 }", "{ A = { B = \"x\" } }", "=x", "{ \"A=B\" = \"x\" }", "{ \"\" = \"x\" }"],
    ),
    (Kind::AutoOrCount, &["", "0", "-1", "Auto", "1.5"]),
    (Kind::Money, &["", "-1", "1e3", "nan", "inf", ".5", "1.", "1.1234567", "1,5", "99999999999999"]),
    (
        Kind::ActiveHours,
        &[
            "",
            "8-22",
            "08:00",
            "8:00-22:00",
            "08:00-25:00",
            "08:60-22:00",
            "24:00-08:00",
            "08:00-08:00",
            "08:00-22:00-23:00",
        ],
    ),
    (Kind::TimeZone, &["", "Berlin", "Europe/", "Mars/Base", "europe/berlin", "Europe/../passwd", "Europe//Berlin"]),
    (
        Kind::Url,
        &[
            "",
            "host",
            "mysql://h/db",
            "postgres://",
            "postgres:///db",
            "postgres://u@/db",
            "postgres://:5432/db",
            "postgres://h/a b",
        ],
    ),
    (Kind::Web, &["", "example.org", "ftp://h/x", "https://", "http:///x", "https://:80/x", "https://h/a b"]),
    (Kind::Secret, &["", "  ", "a\nb"]),
    (Kind::Address, &["", "7777", ":7777", "localhost:7777", "127.0.0.1", "127.0.0.1:99999"]),
];

/// TOML that is well formed but not of the kind.
const REFUSED_TOML: &[(Kind, &[&str])] = &[
    (COUNT, &["\"3\"", "3.0", "true", "[3]"]),
    (Kind::Boolean, &["\"true\"", "1"]),
    (DELAY, &["0", "5", "5.0", "\"5\"", "00:05:00"]),
    (Kind::Size, &["256", "\"256\""]),
    (Kind::Text, &["3", "[\"a\"]", "\"\"", "\"a\\u0007\""]),
    (WORDS, &["true", "\"x\""]),
    (LIST, &["\"make test\"", "[1]", "{ a = \"b\" }"]),
    (Kind::TextTable, &["\"A=x\"", "{ A = 1 }", "[]"]),
    (Kind::AutoOrCount, &["\"3\"", "0", "true"]),
    (Kind::Money, &["\"5\"", "-0.5", "nan", "inf", "1e3", "true"]),
    (Kind::Url, &["5", "\"x\""]),
];

fn read(kind: Kind, text: &str) -> Option<Value> {
    let document = toml_edit::Document::parse(text).unwrap();
    kind.read_item(document.as_table().get("x").unwrap(), text)
}

#[test]
fn good_values_are_taken_and_shown_as_typed() {
    for (kind, typed, shown) in TAKEN {
        let value = kind.read_text(typed);
        let value = value.unwrap_or_else(|| panic!("{kind:?} refuses {typed:?}"));
        // Lists and tables are printed by the TOML library; spaces are its choice.
        let squeeze = |text: &str| text.replace(", ", ",");
        assert_eq!(squeeze(&value.to_string()), squeeze(shown), "{kind:?}");
    }
}

#[test]
fn bad_values_are_refused() {
    for (kind, texts) in REFUSED {
        for text in *texts {
            assert_eq!(kind.read_text(text), None, "{kind:?} takes {text:?}");
        }
    }
}

#[test]
fn bad_toml_values_are_refused() {
    for (kind, texts) in REFUSED_TOML {
        for text in *texts {
            assert_eq!(read(*kind, &format!("x = {text}")), None, "{kind:?}: {text}");
        }
    }
}

#[test]
fn a_value_written_to_a_file_reads_back_as_itself() {
    for (kind, typed, _) in TAKEN {
        let value = kind.read_text(typed).unwrap();
        let text = format!("x = {}", value.to_toml());
        assert_eq!(read(*kind, &text), Some(value));
    }
}

#[test]
fn durations_sizes_and_money_have_their_amount() {
    let duration = |text| match DELAY.read_text(text) {
        Some(Value::Duration { length, .. }) => length,
        other => panic!("{other:?}"),
    };
    assert_eq!(duration("800ms"), Duration::from_millis(800));
    assert_eq!(duration("1h 30m"), Duration::from_mins(90));
    assert_eq!(duration("30d"), Duration::from_hours(720));
    let size = |text| match Kind::Size.read_text(text) {
        Some(Value::Size { bytes, .. }) => bytes,
        other => panic!("{other:?}"),
    };
    assert_eq!(size("256 MB"), 256_000_000);
    assert_eq!(size("1 GiB"), 1 << 30);
    let micros = |text| match Kind::Money.read_text(text) {
        Some(Value::Money { micros, .. }) => micros,
        other => panic!("{other:?}"),
    };
    assert_eq!(micros("12.5"), 12_500_000);
    assert_eq!(micros("0.000001"), 1);
}

#[test]
fn every_default_and_example_of_the_table_is_valid() {
    for key in KEYS {
        let (Initial::Default(text) | Initial::Unset { example: text }) = key.initial;
        assert!(key.kind.read_text(text).is_some(), "{}", key.path);
        assert!(!key.help.ends_with('.') && !key.help.contains('\n'), "{}", key.path);
    }
}

#[test]
fn paths_of_the_table_are_unique() {
    let paths = KEYS.iter().map(|key| key.path).collect::<BTreeSet<_>>();
    assert_eq!(paths.len(), KEYS.len());
}

#[test]
fn secrets_are_not_printed() {
    let url = Kind::Url.read_text("postgres://u:hunter2@h/db").unwrap();
    let table = Kind::TextTable.read_text("TOKEN=hunter2").unwrap();
    for shown in [url.to_string(), format!("{url:?}"), table.to_string(), format!("{table:?}")] {
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}

#[test]
fn a_secret_is_not_printed_where_it_cannot_be_read() {
    for line in ["token = \"hunter2", "channels.x = { secret = \"hunter2\", ", "  \"url\" = 'http://hunter2"] {
        let shown = told(&Config::parse(line).unwrap_err());
        assert!(!shown.contains("hunter2") && shown.contains("***"), "{shown}");
    }
    for key in ["channels.x.url", "channels.x.token"] {
        let shown = told(&set("", key, "hunter2\u{7}").unwrap_err());
        assert!(!shown.contains("hunter2") && shown.contains("***"), "{shown}");
    }
}

#[test]
fn a_password_with_quotes_in_it_is_not_printed_either() {
    for url in ["postgres://u:'hunter2@h/db", "postgres://u:a\"hunter2\"@h", "postgres://u@h/db?password=a`hunter2&x=y"]
    {
        let value = Kind::Url.read_text(url).unwrap();
        let refusal = set("", "server.bind", url).unwrap_err();
        for shown in [value.to_string(), told(&refusal)] {
            assert!(!shown.contains("hunter2") && shown.contains("***"), "{shown}");
        }
    }
}
