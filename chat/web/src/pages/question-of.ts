/** What a form asks before it is sent: `{name}` stands for what is in its field of that name. */
export function questionOf(form: HTMLFormElement): string {
  const typed = new FormData(form);
  return (form.dataset.confirm ?? "").replace(/\{(\w+)\}/g, (_, name: string) =>
    String(typed.get(name) ?? "").trim(),
  );
}
