// Package ports tells which process has a UDP port of this machine, from what
// Linux shows below /proc; on other systems it knows nothing. It opens no
// socket and asks nobody, so that its answer may be old when it is read.
//
// Sockets reads /proc/net/udp and udp6, Socket.Takes tells which of them get
// the packets to an address, and Socket.Process looks through the descriptors
// of all processes for a socket's inode. Holder does the three for the text of
// an error.
package ports
