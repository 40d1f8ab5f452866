"""Mail services where anybody can get an address, so that one at their domain says nothing of whom somebody belongs to."""

from __future__ import annotations

from typing import Final

from workspaces.words.mail_addresses import typed_address

_NAMES: Final = """
    gmail.com googlemail.com outlook.com outlook.de outlook.fr hotmail.com hotmail.co.uk hotmail.de hotmail.fr hotmail.it
    live.com live.co.uk live.de live.fr msn.com yahoo.com yahoo.co.jp yahoo.co.uk yahoo.co.in yahoo.com.br yahoo.de
    yahoo.fr ymail.com rocketmail.com aol.com icloud.com me.com mac.com proton.me protonmail.com pm.me tuta.com
    tutanota.com fastmail.com zoho.com zohomail.com mail.com email.com gmx.com gmx.net gmx.de gmx.at gmx.ch web.de
    freenet.de t-online.de posteo.de mailbox.org orange.fr free.fr laposte.net sfr.fr wanadoo.fr libero.it virgilio.it
    seznam.cz wp.pl o2.pl onet.pl interia.pl mail.ru bk.ru inbox.ru list.ru yandex.ru yandex.com ya.ru ukr.net rambler.ru
    qq.com foxmail.com 163.com 126.com sina.com yeah.net naver.com daum.net hanmail.net rediffmail.com uol.com.br
    bol.com.br terra.com.br comcast.net verizon.net att.net sbcglobal.net btinternet.com bluewin.ch hey.com duck.com
"""
PUBLIC_MAIL_DOMAINS: Final = frozenset(_NAMES.split())
"""The biggest ones by country; short on purpose, since it only decides whether somebody is asked once more."""


def mail_domain(typed: str) -> str:
    """Give a mail domain as it is compared, of what somebody typed: in small letters, without the @."""
    return typed_address(typed).removeprefix("@")


def is_public_mail(domain: str) -> bool:
    """Whether anybody can get an address at this domain."""
    return mail_domain(domain) in PUBLIC_MAIL_DOMAINS
