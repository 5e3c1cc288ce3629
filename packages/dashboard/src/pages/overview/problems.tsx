/** What fails now. */
import { useStore } from "../../data/context.ts";
import { problemsOf } from "../../data/problems.ts";
import { TOPIC } from "../../data/store.ts";
import { count } from "../../format.ts";
import { Section, Words } from "../../parts/basics.tsx";
import { StateShape } from "../../parts/state.tsx";
import { Link } from "../../router.tsx";

/** Shown at first: with more, one cause is likely behind all of them. */
const MOST_SHOWN = 20;

/** Lists machines that someone should look at. Absent when there are none. */
export function Problems() {
  const problems = useStore(TOPIC.machines, ({ machines }) => problemsOf(machines.values()));
  if (problems.length === 0) return null;
  const left = problems.length - MOST_SHOWN;
  return (
    <Section title="Failing now" aside={<span class="muted">{count(problems.length, "machine")}</span>}>
      <ul class="stack">
        {problems.slice(0, MOST_SHOWN).map(({ machine, level, title, detail }) => (
          <li key={machine.machine_id} class="problem">
            <StateShape tone="failed" color={level === "error" ? "failed" : "warm"} />
            <div>
              <p>
                <Link to={{ page: "machine", app: machine.app_name, machine: machine.machine_id }}>
                  {machine.app_name} / {machine.name}
                </Link>{" "}
                <strong>{title}</strong>
              </p>
              {detail !== "" && (
                <p class="problem-detail">
                  <Words text={detail} />
                </p>
              )}
            </div>
          </li>
        ))}
      </ul>
      {left > 0 && <p class="muted">And {count(left, "more machine")}.</p>}
    </Section>
  );
}
