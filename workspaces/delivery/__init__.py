"""What leaves: mails, notices and nudges to pages, webhooks, push messages, and the outbox that they wait in."""
