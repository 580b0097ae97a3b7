// Package natslink carries documents between an agent and its fleet over NATS: it is the agent's Link.
//
// Four triggers lead to one door: an envelope that is pushed, a (re)connection, a signed answer to a heartbeat that
// names another document, and a slow poll. Each of them is enough alone. What comes through the door is verified,
// opened and offered to the agent; what is not accepted changes nothing.
//
// The package is a core NATS client with one connection. It has no consumer, watches no bucket, creates nothing on the
// server, and knows nothing of how an intent is played.
package natslink
