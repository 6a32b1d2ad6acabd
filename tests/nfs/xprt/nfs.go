package xprt

// readData finds the data in a reply to an NFSv3 READ (RFC 1813, 3.3.6): where
// their length stands, and how many bytes follow it; 0 when there are none.
func readData(reply []byte) (at, n int) {
	r := reader{b: reply}
	r.number() // XID
	if r.number() != 1 || r.number() != 0 {
		return 0, 0 // no reply that was accepted
	}
	r.number() // the verifier's flavour
	r.skip(int(r.number()))
	if r.number() != 0 || r.number() != 0 {
		return 0, 0 // RPC or NFS failed
	}
	if r.number() == 1 {
		r.skip(84) // attributes
	}
	r.skip(8) // count, end of file
	at = len(reply) - len(r.b)
	n = int(r.number())
	if r.bad || n > len(r.b) {
		return 0, 0
	}
	return at, n
}

// skip leaves out n bytes and what fills them up to four.
func (r *reader) skip(n int) {
	if n = padded(n); n < 0 || n > len(r.b) {
		r.end()
		return
	}
	r.b = r.b[n:]
}

func padded(n int) int { return (n + 3) &^ 3 }
