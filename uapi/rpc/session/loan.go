package session

import "github.com/rdmashim/rdmashim/uapi/rpc/session/wire"

// Memory is the memory of one end of a session that long bodies lie in. A
// program that borrows pieces of it has its messages sent, and reads the
// peer's, without a copy. A loan ends with Release alone: the memory remains
// the program's until then, whatever becomes of the session. The bytes that a
// program borrows at a time have a bound, ClientConfig.Loans and
// ServerConfig.Loans; Client.Close and ServerStats tell of loans that were not
// released.
type Memory struct{ slabs *slabs }

const defaultLoans = 64 << 20

// Memory is the memory of the client's end.
func (c *Client) Memory() Memory { return Memory{&c.slabs} }

// Memory is the memory of the server's end of the stream's session.
func (s *ServerStream) Memory() Memory { return Memory{s.stream.end.memory()} }

// Memory is the memory of the server's end of the call's session.
func (r *Request) Memory() Memory { return Memory{r.memory} }

// Lend lends n bytes to be filled, which have any content. As Bytes they are a
// Body that is sent from where it lies, if it begins where they do; they must
// not change before they were released and lent again. It returns nil beyond
// the bound, and for lengths that no loan has: up to 32 KiB, which travel in
// their message, and more than 64 MiB and 64 KiB.
func (m Memory) Lend(n int) []byte {
	if n <= copyLimit || n > wire.MaxBody {
		return nil
	}
	if !m.slabs.account.take(useSend, sized(n)) {
		return nil
	}
	x := m.slabs.get(n, useSend)
	defer x.drop()
	if !m.Hold(x.bytes()) {
		return nil
	}
	return x.bytes()
}

// Hold lends a body that a function was given until it returns, until Release
// instead: a call's, an answer's, or a message's of a stream. It returns false
// beyond the bound, and for a body that came in its message; the function
// copies those that it needs. Each Hold asks for a Release.
func (m Memory) Hold(body []byte) bool {
	s := m.slabs
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.at(body)
	if x == nil || x.refs == 0 || s.closed || x.loans == 0 && s.lent+len(x.mem) > s.most {
		return false
	}
	if x.loans == 0 {
		s.lent += len(x.mem)
	}
	x.refs++
	x.loans++
	s.loans++
	return true
}

// Release ends a loan: of Lend or Hold, all of it or its beginning. It does
// nothing for other bytes.
func (m Memory) Release(b []byte) {
	s := m.slabs
	s.mu.Lock()
	x := s.at(b)
	if x == nil || x.loans == 0 {
		s.mu.Unlock()
		return
	}
	x.loans--
	s.loans--
	if s.closed {
		s.owed.Add(-1)
	}
	if x.loans == 0 {
		s.lent -= len(x.mem)
	}
	left := s.left(x)
	s.mu.Unlock()
	if left {
		x.deregister()
	}
}

// at finds the slab that bytes are the beginning of. Preconditions: mu is held.
func (s *slabs) at(b []byte) *slab {
	if cap(b) == 0 {
		return nil
	}
	return s.all[&b[:1][0]]
}

// borrowed holds the slab that bytes are the beginning of if it is lent, and
// returns nil else.
func (s *slabs) borrowed(b []byte) *slab {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.at(b)
	if x == nil || x.loans == 0 || len(b) > len(x.mem) {
		return nil
	}
	x.refs++
	return x
}
