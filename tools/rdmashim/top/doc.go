// Package top reads RDMA devices again and again and shows their work between
// the readings, for 'rdmashim top' and 'rdmashim stats'. It opens no device and
// counts nothing itself.
//
// A reading flows so: Source (source.go) takes the soft devices of this user's
// processes from their sockets (uapi/stats) and the kernel's devices from
// netlink (kernel.go). Two readings make a Frame (frame.go), whose rates are
// the differences over the time between. A Frame is printed as a table
// (table.go) or as a line of JSON; Run (run.go) does that until it is
// told to stop. totals.go prints one reading as it is, scrape.go answers each
// scraper over HTTP with one.
package top
