// Package ports tells which process has a UDP port of this machine, by reading
// /proc of Linux; on other systems it knows nothing. It opens no socket and
// asks no other process, and its answer may be old when it is read.
//
// Sockets reads /proc/net/udp and udp6, Socket.Takes tells which of them get
// the packets to an address, and Socket.Process looks through the descriptors
// of all processes for a socket's inode. Holder does the three for the text of
// an error.
package ports
