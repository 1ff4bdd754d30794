//! What holds for every formula: the order respects needs, cooking repeats itself, no placeholder is left.

use proptest::prelude::*;

use super::*;

/// Steps with needs on earlier ones, written in any order, some of them in others.
fn formulas() -> impl Strategy<Value = String> {
    let step = (proptest::collection::vec(any::<prop::sample::Index>(), 0..4), any::<bool>(), 0..3_usize);
    (proptest::collection::vec(step, 1..20), any::<u64>()).prop_map(|(steps, seed)| {
        let mut texts: Vec<String> = Vec::new();
        for (n, (needs, has_child, var)) in steps.iter().enumerate() {
            let needs: Vec<String> =
                needs.iter().filter(|_| n > 0).map(|need| format!("'s{}'", need.index(n))).collect();
            let child = if *has_child {
                format!("[[steps.children]]\nid='k{n}'\ntitle='K {{{{v0}}}}'\n")
            } else {
                String::new()
            };
            texts.push(format!(
                "[[steps]]\nid='s{n}'\ntitle='S {{{{v{var}}}}}'\ndescription='{{{{issue}}}}'\nneeds=[{}]\n{child}",
                needs.join(",")
            ));
        }
        let n_texts = texts.len();
        texts.rotate_left(seed as usize % n_texts);
        format!("formula='x'\nversion=1\n{}[vars]\nv0='a'\nv1='b'\nv2=''\n", texts.concat())
    })
}

fn place(cooked: &Cooked, id: &str) -> usize {
    cooked.steps.iter().position(|step| step.id == id).expect("it is there")
}

proptest! {
    #[test]
    fn what_is_needed_comes_first_with_all_its_children(text in formulas()) {
        let cooked = Shelf::default().with("x", &text).recipe("x").cook(None).expect("it cooks");
        for (at, step) in cooked.steps.iter().enumerate() {
            for need in &step.needs {
                prop_assert!(place(&cooked, need) < at);
                for child in cooked.steps.iter().filter(|child| child.parent.as_ref() == Some(need)) {
                    prop_assert!(place(&cooked, &child.id) < at);
                }
            }
            if let Some(parent) = &step.parent {
                prop_assert!(place(&cooked, parent) < at);
            }
        }
    }

    #[test]
    fn cooking_repeats_itself_and_leaves_no_known_placeholder(text in formulas(), value in "[a-z {]{0,9}") {
        let values = Values::given(&format!("v1={value}")).about("gt-1", "T", "shop", "main");
        let shelf = Shelf::default().with("x", &text);
        let cooked = shelf.recipe("x").cook(Some(&values)).expect("it cooks");
        prop_assert_eq!(&cooked, &shelf.recipe("x").cook(Some(&values)).expect("it cooks again"));
        for step in &cooked.steps {
            for known in ["{{v0}}", "{{v1}}", "{{v2}}", "{{issue}}"] {
                prop_assert!(!step.title.contains(known) && !step.description.contains(known));
            }
        }
    }

    #[test]
    fn any_text_is_taken_or_refused(text in "\\PC{0,200}") {
        let recipe = Shelf::default().with("x", &text).recipe("x");
        prop_assert_eq!(recipe.cook(None).is_err(), recipe.errors().next().is_some());
    }
}
