// Package loopback says of an error that the loopback interface is down, as it
// is in a fresh network namespace: 127.0.0.1 is not there then, and Linux says
// no more than "network is unreachable".
//
// It mends nothing. A call flows: Explain looks at the errno, then at the
// interfaces.
package loopback
