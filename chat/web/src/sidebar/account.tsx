import { useState } from "preact/hooks";
import { api, boot } from "../app/boot";
import { messageOf, toast } from "../app/toasts";
import { applyTheme, chosenTheme, type Theme } from "../browser/theme";
import common from "../texts/common";
import t from "../texts/shell";
import shortcuts from "../texts/shortcuts";
import waiting from "../texts/waiting";
import { Icon } from "../ui/icon";
import { Menu, MenuButton, MenuLink } from "../ui/menu";
import { isWaitingOpen } from "../waiting/state";
import { isHelpOpen } from "./opening";

function ThemeChoice() {
  const [theme, setTheme] = useState<Theme>(chosenTheme());
  const choose = (next: Theme) => {
    applyTheme(next);
    setTheme(next);
    api.saveTheme(next).catch((error) => toast(messageOf(error), "bad"));
  };
  return (
    <div class="theme-choice" role="group" aria-label={t.theme}>
      {(["system", "light", "dark"] as const).map((name) => (
        <button key={name} type="button" aria-pressed={theme === name} onClick={() => choose(name)}>
          {t.themes[name]}
        </button>
      ))}
    </div>
  );
}

export function WorkspaceSwitcher() {
  const { workspace, workspaces, urls } = boot;
  const face = (
    <>
      <span class="brand-mark">
        <Icon name="sprout" />
      </span>
      <span class="min-w-0 grow text-left">
        <span class="block truncate font-semibold leading-tight">{workspace.name}</span>
        <span class="block text-xs text-(--quiet) leading-tight">{common.product}</span>
      </span>
    </>
  );
  if (workspaces.length < 2) return <div class="switcher">{face}</div>;
  return (
    <Menu
      label={t.switchWorkspace(workspace.name)}
      buttonClass="switcher switcher-button"
      button={
        <>
          {face}
          <Icon name="chevronsUpDown" />
        </>
      }
    >
      <div class="menu-heading">{t.workspaces}</div>
      {workspaces.map((other) => (
        <a
          key={other.slug}
          class="menu-item"
          href={`/w/${other.slug}/`}
          aria-current={other.slug === workspace.slug ? "true" : undefined}
        >
          <Icon name="building" />
          <span class="truncate grow">{other.name}</span>
          {other.slug === workspace.slug && <Icon name="check" />}
        </a>
      ))}
      {urls.workspaces && (
        <>
          <div class="menu-line" />
          <MenuLink icon="ellipsis" href={urls.workspaces}>
            {t.allWorkspaces}
          </MenuLink>
        </>
      )}
    </Menu>
  );
}

export function UserMenu() {
  const { user, urls, csrf_token } = boot;
  const name = user.name || user.email;
  return (
    <Menu
      label={t.accountMenu}
      buttonClass="switcher switcher-button"
      button={
        <>
          <span class="user-tile" aria-hidden="true">
            {user.picture ? <img src={user.picture} alt="" /> : name.slice(0, 1)}
          </span>
          <span class="truncate grow text-left text-sm font-medium">{name}</span>
          <Icon name="chevronsUpDown" />
        </>
      }
    >
      <div class="menu-heading truncate">{user.email}</div>
      <MenuButton
        icon="hand"
        onClick={() => {
          isWaitingOpen.value = true;
        }}
      >
        {waiting.title}
      </MenuButton>
      <div class="menu-line" />
      {urls.confirm_address && (
        <MenuLink icon="alert" href={urls.confirm_address}>
          {t.confirmAddress}
        </MenuLink>
      )}
      <MenuLink icon="settings" href={urls.settings}>
        {t.settings}
      </MenuLink>
      <MenuLink icon="shield" href={urls.password}>
        {t.password}
      </MenuLink>
      <MenuLink icon="terminal" href={urls.tokens}>
        {t.tokens}
      </MenuLink>
      <MenuLink icon="hand" href={urls.permissions}>
        {t.permissions}
      </MenuLink>
      <MenuButton
        icon="keyboard"
        onClick={() => {
          isHelpOpen.value = true;
        }}
      >
        {shortcuts.title}
      </MenuButton>
      <MenuLink icon="key" href={urls.connections}>
        {t.connections}
      </MenuLink>
      <MenuLink icon="clock" href={urls.activity}>
        {t.activity}
      </MenuLink>
      {urls.platform_audit && (
        <MenuLink icon="audit" href={urls.platform_audit}>
          {t.platformAudit}
        </MenuLink>
      )}
      <div class="menu-line" />
      <ThemeChoice />
      <div class="menu-line" />
      <form
        method="post"
        action={urls.logout}
        onSubmit={(event) => {
          if (!boot.is_kept) return;
          event.preventDefault();
          event.stopPropagation(); // nothing is forgotten, since nobody is signed out
          toast(t.cannotSignOut, "bad");
        }}
      >
        <input type="hidden" name="csrfmiddlewaretoken" value={csrf_token} />
        <button type="submit" class="menu-item" data-stay>
          <Icon name="logOut" />
          <span class="grow">{t.signOut}</span>
        </button>
      </form>
    </Menu>
  );
}
