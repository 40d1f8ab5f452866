/** When a bud's checks run by themselves: before saving, and on a schedule. */
import { useEffect, useRef } from "preact/hooks";
import { localTimes } from "../../pages/times";
import t from "../../texts/checks";
import { filled } from "../../texts/language";
import type { CheckPlan } from "../../wire";

type Every = NonNullable<CheckPlan["every"]>;
export type PlanChange = Pick<CheckPlan, "before_saving" | "every">;

export function PlanForm({ plan, onChange }: { plan: CheckPlan; onChange: (change: PlanChange) => void }) {
  const box = useRef<HTMLParagraphElement>(null);
  useEffect(() => {
    if (box.current) localTimes(box.current);
  }, [plan.next_at]);
  return (
    <details class="more">
      <summary class="link-quiet">{t.plan}</summary>
      <div class="grid gap-4 mt-3">
        <div class="field">
          <label class="check">
            <input
              type="checkbox"
              checked={plan.before_saving}
              aria-describedby="check-before-help"
              onChange={(event) => onChange({ before_saving: event.currentTarget.checked })}
            />
            <span>{t.beforeSaving}</span>
          </label>
          <p class="help" id="check-before-help">
            {t.beforeSavingHelp}
          </p>
        </div>
        <div class="field">
          <label for="check-every">{t.every}</label>
          <select
            id="check-every"
            value={plan.every}
            aria-describedby="check-every-help"
            onChange={(event) => onChange({ every: event.currentTarget.value as Every })}
          >
            {Object.entries(t.repeats).map(([value, label]) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
          </select>
          <p class="help" id="check-every-help">
            {t.everyHelp}
          </p>
        </div>
        {plan.next_at && !plan.trouble && (
          <p class="help" ref={box}>
            {filled(t.nextRun, {
              time: (
                <time dateTime={plan.next_at} data-local="minute" key={plan.next_at}>
                  {plan.next_at}
                </time>
              ),
              person: plan.person,
            })}
          </p>
        )}
        {plan.trouble && (
          <div class="notice" data-tone="warn">
            <p class="grow">{plan.trouble}</p>
            <button
              type="button"
              class="btn btn-sm btn-outline-quiet"
              onClick={() => onChange({ every: plan.every })}
            >
              {t.scheduleAgain}
            </button>
          </div>
        )}
      </div>
    </details>
  );
}
