/** Those that are open: one that nothing holds may be gone as garbage before the person has chosen. */
const open = new Set<HTMLInputElement>();

/** Let the person choose files, or take a photo. */
export function chooseFiles(onFiles: (files: Iterable<File>) => void, isPhoto = false): void {
  const field = document.createElement("input");
  field.type = "file";
  if (isPhoto) {
    field.accept = "image/*";
    field.setAttribute("capture", "environment");
  } else field.multiple = true;
  field.addEventListener("change", () => onFiles(field.files ?? []));
  for (const end of ["change", "cancel"]) field.addEventListener(end, () => open.delete(field));
  open.add(field);
  field.click();
}
