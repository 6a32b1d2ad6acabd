// Package address reads the addresses of transports, for package registration
// and for transports beside it.
//
// It is not for addresses of peers, which may be names.
//
// # How a call flows
//
// A transport's Open calls Parse on its Addr, and Explain on the error with
// which the system refuses the address.
package address
