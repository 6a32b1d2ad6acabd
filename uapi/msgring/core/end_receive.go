package core

// Complete takes in the successful completion of a signaled request.
func (e *End) Complete(id uint64) { e.queue.Complete(id) }

// ReceiveData takes in a chunk of n bytes, which the peer's WRITE_WITH_IMM has
// put into the ring. An error is the peer's breach of the protocol, and ends
// the connection as Fail does.
func (e *End) ReceiveData(n uint64, imm uint32) error {
	if e.ended() != nil {
		return nil
	}
	if e.finSeen {
		return e.violated(breach("data behind its FIN"))
	}
	if err := e.out.Credit(imm); err != nil {
		return e.violated(err)
	}
	return e.violated(e.in.Arrive(n))
}

// ReceiveControl takes in a control message. Errors are those of ReceiveData.
func (e *End) ReceiveControl(b []byte) error {
	if e.ended() != nil {
		return nil
	}
	var m Control
	if err := m.Parse(b); err != nil {
		return e.violated(err)
	}
	if err := e.out.CreditTo(m.Consumed); err != nil {
		return e.violated(err)
	}
	return e.violated(e.carryOut(&m))
}

func (e *End) carryOut(m *Control) error {
	switch m.Type {
	case FIN:
		if e.finSeen {
			return breach("a second FIN")
		}
		if m.Argument != e.in.bytes {
			return breach("a FIN after %d bytes; %d arrived", m.Argument, e.in.bytes)
		}
		e.finSeen = true
	case RESET:
		e.resetSeen = true // whatever its code
	}
	return nil
}

func (e *End) violated(err error) error {
	if err != nil {
		e.Fail(err)
	}
	return err
}
