"""Pages for people and for admins, their forms, and what other apps' pages share with them."""
