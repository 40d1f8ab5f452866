/** Folders, and several chats at once. */
import { plural } from "./language";

const folders = {
  folders: "Folders",
  newFolder: "New folder",
  changeFolder: "Change folder",
  change: "Name and colour…",
  name: "Name",
  colour: "Colour",
  colours: {
    green: "Green",
    blue: "Blue",
    yellow: "Yellow",
    red: "Red",
    purple: "Purple",
    teal: "Teal",
    lime: "Lime",
    pink: "Pink",
  },
  deleteTitle: "Delete this folder?",
  deleteText: (name: string) => `“${name}” is deleted. The chats in it stay in your list.`,
  folderEmpty: "This folder is empty. Begin a chat here, or move chats here: drag them, or use their menu.",
  beginsIn: "This chat goes into {folder}.",
  gone: "The folder has been deleted, so this chat stands in none.",

  move: "Move",
  moveOne: "Move to folder…",
  moveTitle: (count: number) => plural(count, { one: "Move this chat", other: "Move # chats" }),
  noFolder: "No folder",
  makeAndMove: "Create and move",
  moved: (count: number) => plural(count, { one: "Moved.", other: "Moved # chats." }),

  select: "Select",
  selection: "Selected chats",
  selected: (count: number) => plural(count, { one: "# selected", other: "# selected" }),
  selectChat: (title: string) => `Select ${title}`,
  all: "All",
  mostSelected: (count: number) => `You can select up to ${count} chats.`,
  done: {
    archive: (count: number) => plural(count, { one: "Archived.", other: "Archived # chats." }),
    unarchive: (count: number) => plural(count, { one: "Moved back.", other: "Moved # chats back." }),
    delete: (count: number) => plural(count, { one: "Deleted.", other: "Deleted # chats." }),
  },
};

export default folders;
