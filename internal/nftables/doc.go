// Package nftables reads and replaces tables of the kernel's packet filter, over netlink
// and without the nft program: tables of the family inet, their chains, and rules.
//
// A table is read with everything that is needed to make it again as it was, also the rules
// that this package would never make: they stay as the kernel gave them. Sets, maps and
// other objects are counted and not read. A table is replaced, or removed, in one
// transaction: no packet sees a part of it. All other tables are left alone.
//
// What the kernel answers is bounded, and no answer is waited for longer than a few seconds.
// The package knows nothing of firewalls: what rules mean is its callers' to say.
package nftables
