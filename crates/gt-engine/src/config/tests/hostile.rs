//! Input nobody sensible writes: refused or taken, never a panic.

use super::*;

/// Runs everything that reads a document; only the absence of a panic is asked.
fn exercise(text: &str) {
    let parsed = Config::parse(text);
    if let Err(error) = &parsed {
        assert!(!told(error).is_empty() && told(error).len() < 2_000, "{}", told(error).len());
    }
    for key in ["default_agent", "scheduler.max_polecats", "rigs.\"a.b\".gates", "agents.x.env", "lanes.x"] {
        let raw = match key {
            "agents.x.env" => "A=b",
            "default_agent" | "rigs.\"a.b\".gates" => "x",
            _ => "1",
        };
        if let Ok(edited) = set(text, key, raw) {
            assert!(matches!(unset(&edited, key), Ok(Some(_))), "{key} in {edited:.200}");
            assert_eq!(others(text, key), others(&edited, key), "{key} in {edited:.200}");
        }
        if let Ok(Some(edited)) = unset(text, key) {
            assert!(toml_edit::Document::parse(edited.as_str()).is_ok());
            assert_eq!(others(text, key), others(&edited, key), "{key} in {edited:.200}");
        }
    }
}

/// What a document says beside one key, whether the config takes it or not.
fn others(text: &str, key: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let document = toml_edit::Document::parse(text).unwrap();
    collect(document.as_table(), &mut Vec::new(), &mut found);
    found.retain(|path, _| path != key && !path.starts_with(&format!("{key}.")));
    found
}

fn collect(table: &dyn TableLike, path: &mut Vec<String>, found: &mut BTreeMap<String, String>) {
    for (name, item) in table.iter() {
        path.push(name.to_owned());
        if let Some(inner) = item.as_table_like() {
            collect(inner, path, found);
        } else {
            let kind = item.as_value().map(toml_edit::Value::type_name);
            let number = item.as_integer().map(|number| number.to_string());
            let text = item.as_str().map(str::to_owned).or(number);
            found.insert(join(path), format!("{kind:?} {text:?}"));
        }
        path.pop();
    }
}

#[test]
fn odd_documents() {
    for text in [
        "\0",
        "\u{feff}",
        "\u{feff}\u{feff}",
        "\r",
        "\r\n",
        "=",
        "[",
        "[[",
        "]",
        "a",
        "a =",
        "= 1",
        "a = \"",
        "a = [1,",
        "a = {",
        "# \u{7}\n",
        "[scheduler]\n[scheduler]\n",
        "[[scheduler]]\n",
        "[[rigs]]\n[[rigs]]\n",
        "scheduler = 5",
        "scheduler = []",
        "scheduler.max_polecats.x = 1",
        "[scheduler.max_polecats]\n",
        "[[scheduler.max_polecats]]\n",
        "rigs = 1\n",
        "rigs.\"a.b\" = 1\n",
        "rigs.'a.b'.gates = []",
        "[rigs.\"\"]\ngates = []\n",
        "[\"\"]\n\"\" = 1\n",
        "agents.x.env = 5\n",
        "[[agents.x.env]]\n",
        "[agents.x]\nenv = { A.B = 'c' }\n",
        "agents = { x.env.A = 'b' }\n",
        "agents = { x = { env.A = 'b' }, }\n",
        "lanes = { # only a comment\n}\n",
        "lanes = { x = 1 # c\n, y = 2 }\n",
        "default_agent = '''\na\nb'''\n",
        "[agents.x.env]\n[agents]\nx.max = 1\n",
        "[a.b]\n[a]\nb.c = 1\n",
        "[rigs.'a.b']#x",
        "[rigs.'a.b'] # x\r\n",
        "lanes.x = 1\nlanes.\"x\" = 2\n",
        "\"default_agent\" = 'x' # \u{1f600}\n",
        "default_agent=\"\\u0000\"",
        "\"\\u001b[31m\" = 1\n",
        "lanes.\"\\n\" = 1\n",
        "inf = inf",
        "a = 9999999999999999999999\n",
        "a=1979-05-27\n",
    ] {
        exercise(text);
    }
}

#[test]
fn huge_documents() {
    let ten_mb = "x".repeat(10_000_000);
    exercise(&format!("default_agent = \"{ten_mb}\"\n"));
    let long = &ten_mb[..500_000];
    exercise(&format!("{long} = 1\n"));
    exercise(&format!("# {long}\n"));
    exercise(long);
    exercise(&"[".repeat(100_000));
    exercise(&format!("a = {}", "[".repeat(100_000)));
    exercise(&format!("a = {}", "{a=".repeat(100_000)));
    exercise(&format!("lanes.x = 1\n[{}a]\n", "a.".repeat(100_000)));
    exercise(&"[a]\n".repeat(10_000));
    let lanes = (0..3_000).map(|at| format!("lane{at} = 1\n"));
    exercise(&format!("[lanes]\n{}", lanes.collect::<String>()));
}

#[test]
fn hostile_values_and_keys() {
    let ten_mb = "x".repeat(10_000_000);
    let deep = "[".repeat(100_000);
    for key in KEYS {
        let name = concrete(key);
        for raw in [
            ten_mb.as_str(),
            &deep,
            "\0",
            "\u{1b}]0;x\u{7}",
            "\"",
            "'''",
            "[\"a\"]\n[x]",
            "{ A = \"b\" }\nx = 1",
            "\u{202e}",
            "1\nx = 2",
        ] {
            match set("# c\n", &name, raw) {
                Ok(text) => assert_eq!(value_in(&text, &name), key.kind.read_text(raw)),
                Err(error) => {
                    assert!(told(&error).len() < 2_000 && !told(&error).contains('\u{1b}'));
                }
            }
        }
    }
    let dots = "a.".repeat(100);
    for key in [
        "",
        " ",
        ".",
        "a.",
        ".a",
        "a..b",
        "\"",
        "'a",
        "a b",
        "a=b",
        "a\nb",
        "[a]",
        "#",
        "\0",
        "ä",
        "a.\"\".b",
        "rigs.\"\".gates",
        "rigs.\"\\u0007\".gates",
        &dots,
        &ten_mb,
    ] {
        let config = Config::default();
        for error in [config.get(key).unwrap_err(), set("", key, "1").unwrap_err(), unset("", key).unwrap_err()] {
            assert!(told(&error).len() < 2_000, "{key:.100}");
        }
    }
}

#[test]
fn a_value_cannot_smuggle_in_other_keys() {
    for raw in ["x\"\ndefault_agent = \"y", "x' # ", "\\", "[a]", "\u{85}", "\u{2028}"] {
        if let Ok(text) = set("[agents.x]\nmax = 1\n", "rigs.r.gates", raw) {
            let config = Config::parse(&text).unwrap();
            assert_eq!(config.texts("rigs.r.gates"), [raw]);
            assert_eq!(config.text("default_agent").as_deref(), Some("claude"));
        }
    }
}

/// Every prefix and every one-character damage of real documents.
#[test]
fn damaged_documents() {
    for text in [
        "# c\nlanes.x = 1 # d\n[agents.x]\nenv = { A = 'b' }\n[rigs.\"a.b\"]\ngates = [ # e\n'x',\n]\n",
        "lanes = { # a\n y = 1, # b\n x = 1 # c\n}\nagents = { x.env.A = 'b', x.max = 1, }\n",
        "[agents.x.env] # a\nB = 'c'\nA = 'd' # e\n\n[agents.x]\nmax = 1\n[scheduler]\nmax_polecats = 1",
    ] {
        for at in 0..text.len() {
            exercise(&text[..at]);
            for damage in ["", "\"", "[", "}", "#", "\n", "=", ".", ",", "\r"] {
                exercise(&[&text[..at], damage, &text[at + 1..]].concat());
            }
        }
    }
}

#[test]
fn nothing_in_a_refusal_reads_backwards() {
    for text in ["\u{202e}", "x = \"\u{2066}", "lanes.\"\u{202e}\" = 1\n", "[rigs.\"\u{2066}\"]\nisolation = 5\n"] {
        let refusal = told(&Config::parse(text).unwrap_err());
        assert!(!refusal.contains(['\u{202e}', '\u{2066}']), "{refusal:?}");
    }
    for refusal in [set("", "\u{202e}", "1"), set("", "lanes.x", "\u{2066}")] {
        assert!(!told(&refusal.unwrap_err()).contains(['\u{202e}', '\u{2066}']));
    }
}
