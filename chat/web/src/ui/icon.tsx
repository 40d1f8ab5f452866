import archive from "lucide-static/icons/archive.svg?raw";
import archiveRestore from "lucide-static/icons/archive-restore.svg?raw";
import arrowDown from "lucide-static/icons/arrow-down.svg?raw";
import arrowLeft from "lucide-static/icons/arrow-left.svg?raw";
import arrowUp from "lucide-static/icons/arrow-up.svg?raw";
import bell from "lucide-static/icons/bell.svg?raw";
import building from "lucide-static/icons/building-2.svg?raw";
import check from "lucide-static/icons/check.svg?raw";
import chevronDown from "lucide-static/icons/chevron-down.svg?raw";
import chevronLeft from "lucide-static/icons/chevron-left.svg?raw";
import chevronRight from "lucide-static/icons/chevron-right.svg?raw";
import chevronsUpDown from "lucide-static/icons/chevrons-up-down.svg?raw";
import circleCheck from "lucide-static/icons/circle-check.svg?raw";
import question from "lucide-static/icons/circle-question-mark.svg?raw";
import circleX from "lucide-static/icons/circle-x.svg?raw";
import clock from "lucide-static/icons/clock.svg?raw";
import code from "lucide-static/icons/code.svg?raw";
import columns from "lucide-static/icons/columns-2.svg?raw";
import copy from "lucide-static/icons/copy.svg?raw";
import download from "lucide-static/icons/download.svg?raw";
import ellipsis from "lucide-static/icons/ellipsis.svg?raw";
import external from "lucide-static/icons/external-link.svg?raw";
import file from "lucide-static/icons/file.svg?raw";
import fileCode from "lucide-static/icons/file-code.svg?raw";
import fileImage from "lucide-static/icons/file-image.svg?raw";
import fileTable from "lucide-static/icons/file-spreadsheet.svg?raw";
import fileText from "lucide-static/icons/file-text.svg?raw";
import files from "lucide-static/icons/files.svg?raw";
import folder from "lucide-static/icons/folder.svg?raw";
import fork from "lucide-static/icons/git-fork.svg?raw";
import hand from "lucide-static/icons/hand.svg?raw";
import info from "lucide-static/icons/info.svg?raw";
import key from "lucide-static/icons/key-round.svg?raw";
import keyboard from "lucide-static/icons/keyboard.svg?raw";
import listChecks from "lucide-static/icons/list-checks.svg?raw";
import listCollapse from "lucide-static/icons/list-collapse.svg?raw";
import loader from "lucide-static/icons/loader-circle.svg?raw";
import logOut from "lucide-static/icons/log-out.svg?raw";
import maximize from "lucide-static/icons/maximize-2.svg?raw";
import menu from "lucide-static/icons/menu.svg?raw";
import temporary from "lucide-static/icons/message-circle-dashed.svg?raw";
import mic from "lucide-static/icons/mic.svg?raw";
import minimize from "lucide-static/icons/minimize-2.svg?raw";
import panelLeft from "lucide-static/icons/panel-left.svg?raw";
import paperclip from "lucide-static/icons/paperclip.svg?raw";
import pencil from "lucide-static/icons/pencil.svg?raw";
import pin from "lucide-static/icons/pin.svg?raw";
import pinOff from "lucide-static/icons/pin-off.svg?raw";
import plug from "lucide-static/icons/plug.svg?raw";
import plus from "lucide-static/icons/plus.svg?raw";
import printer from "lucide-static/icons/printer.svg?raw";
import quote from "lucide-static/icons/quote.svg?raw";
import refresh from "lucide-static/icons/refresh-cw.svg?raw";
import audit from "lucide-static/icons/scroll-text.svg?raw";
import search from "lucide-static/icons/search.svg?raw";
import settings from "lucide-static/icons/settings.svg?raw";
import share from "lucide-static/icons/share-2.svg?raw";
import shield from "lucide-static/icons/shield.svg?raw";
import sparkles from "lucide-static/icons/sparkles.svg?raw";
import sprout from "lucide-static/icons/sprout.svg?raw";
import compose from "lucide-static/icons/square-pen.svg?raw";
import slash from "lucide-static/icons/square-slash.svg?raw";
import terminal from "lucide-static/icons/terminal.svg?raw";
import wrap from "lucide-static/icons/text-wrap.svg?raw";
import thumbsDown from "lucide-static/icons/thumbs-down.svg?raw";
import thumbsUp from "lucide-static/icons/thumbs-up.svg?raw";
import trash from "lucide-static/icons/trash-2.svg?raw";
import alert from "lucide-static/icons/triangle-alert.svg?raw";
import upload from "lucide-static/icons/upload.svg?raw";
import user from "lucide-static/icons/user.svg?raw";
import volume from "lucide-static/icons/volume-2.svg?raw";
import wifiOff from "lucide-static/icons/wifi-off.svg?raw";
import wrench from "lucide-static/icons/wrench.svg?raw";
import close from "lucide-static/icons/x.svg?raw";

const ICONS = {
  alert,
  archive,
  archiveRestore,
  arrowDown,
  arrowLeft,
  arrowUp,
  audit,
  bell,
  building,
  check,
  chevronDown,
  chevronLeft,
  chevronRight,
  chevronsUpDown,
  circleCheck,
  circleX,
  clock,
  shield,
  temporary,
  terminal,
  close,
  code,
  columns,
  compose,
  copy,
  ellipsis,
  external,
  download,
  file,
  fileCode,
  fileImage,
  fileTable,
  fileText,
  files,
  folder,
  fork,
  hand,
  info,
  key,
  keyboard,
  listChecks,
  listCollapse,
  loader,
  logOut,
  maximize,
  menu,
  mic,
  minimize,
  panelLeft,
  paperclip,
  pencil,
  pin,
  pinOff,
  plug,
  plus,
  printer,
  quote,
  question,
  refresh,
  search,
  settings,
  share,
  slash,
  sparkles,
  sprout,
  thumbsDown,
  thumbsUp,
  trash,
  upload,
  user,
  volume,
  wifiOff,
  wrap,
  wrench,
};

export type IconName = keyof typeof ICONS;

/** A decorative icon from our own build; what it means always stands beside it in words. */
export function Icon({ name, class: extra = "" }: { name: IconName; class?: string }) {
  return (
    <span class={`icon ${extra}`} aria-hidden="true" dangerouslySetInnerHTML={{ __html: ICONS[name] }} />
  );
}

export function iconHtml(name: IconName): string {
  return `<span class="icon" aria-hidden="true">${ICONS[name]}</span>`;
}
