import { useEffect, useId, useState } from "preact/hooks";
import { describedBy, Framed } from "../../forms/frame";

interface SuggestFieldProps {
  name: string;
  label: string;
  help?: string;
  required: boolean;
  value: string;
  problem?: string;
  onInput: (value: string) => void;
  /** What the server suggests for what was typed so far. */
  suggest: (value: string) => Promise<string[]>;
  isFirst?: boolean;
}

const WAIT_MS = 250;

/** A text field that asks the server for suggestions once the typing pauses; without any it is just a field. */
export function SuggestField(props: SuggestFieldProps) {
  const id = useId();
  const [found, setFound] = useState<string[]>([]);
  const { value, suggest } = props;
  useEffect(() => {
    let isCurrent = true;
    const timer = setTimeout(async () => {
      try {
        const values = await suggest(value);
        if (isCurrent) setFound(values.filter((one) => one !== value).slice(0, 50));
      } catch {
        // Suggestions are a help and no more.
      }
    }, WAIT_MS);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [value]);
  const { label, help, problem, required } = props;
  return (
    <Framed id={id} title={label} help={help} problem={problem} required={required}>
      <input
        id={id}
        type="text"
        list={found.length > 0 ? `${id}-list` : undefined}
        autocomplete="off"
        required={required}
        value={value}
        {...describedBy({ id, help, problem })}
        autofocus={props.isFirst}
        onInput={(event) => props.onInput(event.currentTarget.value)}
      />
      <datalist id={`${id}-list`}>
        {found.map((one) => (
          <option key={one} value={one} />
        ))}
      </datalist>
    </Framed>
  );
}
