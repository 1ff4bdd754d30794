//! What a convoy looks like: tree and table, picture and flowchart, and how they stay legible.

use crate::convoy_staging::{CHECKOUT, bead};
use crate::town::{Town, snapshot};

#[test]
fn an_epic_is_drawn_as_a_tree_and_a_table() {
    let town = Town::holding(CHECKOUT);
    snapshot!("convoy_stage", town.gt(["convoy", "stage", "gt-e"]).to_string());
}

#[test]
fn tasks_are_drawn_after_what_they_wait_for() {
    let town = Town::holding(CHECKOUT);
    let answer = town.gt(["convoy", "stage", "gt-a", "gt-b", "gt-c", "gt-d", "--title", "Some of it"]);
    snapshot!(answer.to_string(), @"
    $ gt convoy stage gt-a gt-b gt-c gt-d --title 'Some of it'
    ○ gt-a  Write the parser  wave 1
    ├▶ ⏸ gt-b  Use the parser  wave 2
    │  └▶ ⏸ gt-d  Refunds  wave 3  ← gt-b, gt-c
    └▶ ⏸ gt-c  Card payments  wave 2

    Wave     ID    Title             Rig   Blocked by
    1      ○ gt-a  Write the parser  shop
    2      ⏸ gt-b  Use the parser    shop  gt-a
           ⏸ gt-c  Card payments     shop  gt-a
    3      ⏸ gt-d  Refunds           shop  gt-b, gt-c

    4 tasks across 3 waves (max parallelism: 2 in wave 2)

    ✓ Staged: hq-cv-id01 Some of it (staged:ready)
      Nothing starts until `gt convoy launch hq-cv-id01`.
    ");
}

/// 200 tasks at once with titles of 300 characters, and a chain of 80 behind them.
fn crowd() -> Town {
    let mut lines = vec![bead("gt-e", "epic", "open", &[])];
    lines.extend((0..200).map(|at| {
        let title = "very long words ".repeat(18) + "日本語のタイトル";
        bead(&format!("gt-w.{at:03}"), "task", "open", &[("parent-child", "gt-e")]).replace("Do it", &title)
    }));
    lines.extend((0..80).map(|at| {
        let before = if at == 0 { "gt-w.000".to_owned() } else { format!("gt-x.{:03}", at - 1) };
        bead(&format!("gt-x.{at:03}"), "task", "open", &[("parent-child", "gt-e"), ("blocks", &before)])
    }));
    Town::holding(&lines.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn wide_and_long_graphs_stay_legible() {
    let town = crowd();
    let tasks: Vec<String> =
        (0..200).map(|at| format!("gt-w.{at:03}")).chain((0..80).map(|at| format!("gt-x.{at:03}"))).collect();
    let of_tasks = ["convoy", "stage"].into_iter().map(str::to_owned).chain(tasks);
    for answer in [town.gt(["convoy", "stage", "gt-e"]), town.call(of_tasks).run()] {
        answer.success();
        let lines: Vec<&str> = answer.stdout.lines().collect();
        assert!(lines.len() < 160, "{} lines", lines.len());
        let tables: Vec<&&str> = lines.iter().filter(|line| line.contains("gt-w.") && !line.contains("and")).collect();
        assert!(tables.iter().all(|line| line.chars().count() <= 100), "{answer}");
        assert!(lines.contains(&"         … and 188 more"), "{answer}");
        assert!(answer.stdout.contains("waves more, with"), "{answer}");
    }
    let convoy = town.gt(["convoy", "stage", "gt-e", "--json"]).json()["convoy_id"].as_str().expect("an id").to_owned();
    let status = town.gt(["convoy", "status", &convoy]);
    assert!(status.stdout.lines().count() < 80, "{status}");
    assert!(status.stdout.contains("… and 188 more"), "{status}");
    assert!(!status.stdout.contains('\x1b'), "no colours in a pipe");
}

#[test]
fn the_width_of_the_terminal_is_known_in_tests_as_100() {
    let town = crowd();
    let answer = town.gt(["convoy", "stage", "gt-e"]);
    let widest = answer.stdout.lines().filter(|line| line.contains("very long")).map(|line| line.chars().count()).max();
    assert!(widest.is_some_and(|widest| (90..=100).contains(&widest)), "{widest:?}");
}

#[test]
fn a_picture_holds_what_people_wrote_as_text() {
    let lines = [
        r#"{"id":"gt-a","title":"<script>alert('x')</script> & \"more\" ]]> \u0001"}"#,
        r#"{"id":"gt-b","title":"After it","dependencies":[{"depends_on_id":"gt-a","type":"blocks"}]}"#,
    ];
    let town = Town::holding(&lines);
    town.gt(["convoy", "stage", "gt-a", "gt-b", "--svg", "plan.svg"]).success();
    let svg = town.read("plan.svg");
    assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\"") && svg.ends_with("</svg>\n"), "{svg}");
    assert!(!svg.contains("<script") && !svg.contains('\u{1}'), "{svg}");
    assert!(svg.contains("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; &quot;more&quot;"), "{svg}");
    for part in ["Wave 1 · 1", "Wave 2 · 1", "After it", ">ready<", ">blocked<", "<path d=\"M"] {
        assert!(svg.contains(part), "{part} in {svg}");
    }
    // Every element that is opened is closed.
    assert_eq!(svg.matches("<g>").count() + svg.matches("<g ").count(), svg.matches("</g>").count());
    assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
    assert_eq!(svg.matches("<title>").count(), svg.matches("</title>").count());
}

#[test]
fn a_picture_of_very_much_is_bounded() {
    let town = crowd();
    town.gt(["convoy", "stage", "gt-e", "--svg", "plan.svg"]).success();
    let svg = town.read("plan.svg");
    assert!(svg.len() < 400_000, "{} bytes", svg.len());
    assert!(svg.contains("… and 161 more") && svg.contains("41 waves more"), "{}", &svg[..2000]);
}

#[test]
fn a_dry_run_draws_the_picture_and_stores_nothing() {
    let town = Town::holding(CHECKOUT);
    let before = town.state();
    town.gt(["convoy", "stage", "gt-e", "--svg", "plan.svg", "--dry-run"]).success();
    assert!(town.read("plan.svg").contains("Checkout rewrite"));
    assert_eq!(town.state(), before);
}

#[test]
fn a_list_of_convoys_fits_the_terminal() {
    let town = Town::holding(&[r#"{"id":"gt-a","title":"Do it"}"#, r#"{"id":"gt-b","title":"Do that"}"#]);
    let long = "A title that is far longer than any terminal is wide ".repeat(3);
    town.gt(["convoy", "create", &long, "gt-a", "--owned"]).success();
    town.gt(["convoy", "create", "Short", "gt-b"]).success();
    let answer = town.gt(["convoy", "list"]);
    snapshot!(answer.to_string(), @"
    $ gt convoy list
    hq-cv-id01  open                0/1  A title that is far longer than any terminal is wide A…  owned
    hq-cv-id02  open                0/1  Short
    ");
    let widths: Vec<usize> = answer.stdout.lines().map(|line| line.chars().count()).collect();
    assert!(widths.iter().all(|width| *width <= 100), "{widths:?}");
}

#[test]
fn a_picture_that_cannot_be_written_stores_nothing() {
    let town = Town::holding(CHECKOUT);
    snapshot!(town.refused(["convoy", "stage", "gt-e", "--svg", "nowhere/plan.svg"]), @"
    $ gt convoy stage gt-e --svg nowhere/plan.svg
    ! error: cannot write the picture nowhere/plan.svg
    ! hint: name a file in a directory that is there, as in `--svg plan.svg`
    [exit 1]
    ");
}

#[test]
fn a_flowchart_is_printed_for_pages_that_draw_one() {
    let town = Town::holding(CHECKOUT);
    snapshot!("convoy_mermaid", town.gt(["convoy", "stage", "gt-e", "--mermaid"]).to_string());
}
