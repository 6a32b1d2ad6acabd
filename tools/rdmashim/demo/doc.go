// Package demo has the commands that move a file between two processes by RDMA
// and prove it: demo starts both, server and client are one each.
//
//	client                                 server
//	Greet     the file's name and length   prepare   memory of that length, and a word
//	transfer  WRITE the file in pieces
//	          SEND with immediate ───────▶ answer    SEND the digest of the memory
//	          fetch-and-add on the word
//	          READ everything back
//	goodbye ─────────────────────────────▶ farewell, with the server's counters
//
// Package peer has the control connection below it, and the bounds of the
// server. It is no way to move files for good: the server keeps none.
package demo
