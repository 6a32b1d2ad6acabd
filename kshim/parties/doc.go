// Package parties shares the connections that a server serves at a time among
// the parties at their other ends, so that none keeps the others out: processes
// of this host, or hosts.
//
// Seats.Take is called for each connection that comes, and Leave when it has
// gone. Of says of an address whose it is. The package authenticates nobody:
// a party that has many names has a share for each.
package parties
