/** Let the person choose files, or take a photo. */
export function chooseFiles(onFiles: (files: Iterable<File>) => void, isPhoto = false): void {
  const field = document.createElement("input");
  field.type = "file";
  if (isPhoto) {
    field.accept = "image/*";
    field.setAttribute("capture", "environment");
  } else field.multiple = true;
  field.addEventListener("change", () => onFiles(field.files ?? []));
  field.click();
}
