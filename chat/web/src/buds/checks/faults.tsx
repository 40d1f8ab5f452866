/** What is wrong, line by line. */
export function Faults({ lines }: { lines: string[] }) {
  return (
    <>
      {lines.map((line) => (
        <p class="field-error" key={line}>
          {line}
        </p>
      ))}
    </>
  );
}
