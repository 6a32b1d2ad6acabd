package core

import (
	"fmt"
	"slices"
)

// connection lists the possible fates of the newest connection.
func (w *world) connection(add adder) {
	c, epoch := w.Client, w.Client.epoch
	switch {
	case w.Phase == dialling:
		add(false, fmt.Sprintf("the server takes REQ %d", epoch), func(d *world) string { return d.admit() })
	case w.Phase == answering && !w.Conns[epoch-1].Broken:
		add(false, fmt.Sprintf("the client gets REP %d", epoch), func(d *world) string { return d.connected() })
	}
	if w.Phase != dialling && !w.Conns[epoch-1].Broken && int(epoch) < w.Epochs {
		add(true, fmt.Sprintf("connection %d breaks", epoch), func(d *world) string {
			d.Conns[epoch-1].Broken = true
			return ""
		})
	}
	if w.Phase != dialling && w.Conns[epoch-1].Broken {
		add(false, fmt.Sprintf("the client dials with epoch %d", epoch+1), func(d *world) string {
			d.Client.Disconnected(d.Client.live, d.event)
			d.Reads = slices.DeleteFunc(d.Reads, func(r read) bool { return !r.Server })
			d.Client.Attempt()
			d.Phase = dialling
			return ""
		})
	}
	if x := w.Session; x != nil && x.live != 0 && w.Conns[x.live-1].Broken {
		add(false, fmt.Sprintf("the server sees that connection %d is broken", x.live), func(d *world) string {
			d.lost(d.Session.live)
			return ""
		})
	}
	if x := w.Session; w.Loses && !w.Mixed && x != nil && !x.ended && !x.open && x.handlers == 0 && int(c.epoch) <= w.Epochs {
		add(true, "the session's life ends", func(d *world) string {
			d.Server.Expire(1<<60, func(*Session) {})
			return ""
		})
	}
}

// lost is what the server does when a connection's queue pair is destroyed.
func (w *world) lost(epoch uint32) {
	w.Session.Disconnected(w.Now, epoch, func(Event) {})
	w.Reads = slices.DeleteFunc(w.Reads, func(r read) bool { return r.Server && r.Epoch == epoch })
}

func (w *world) admit() (problem string) {
	epoch := w.Client.epoch
	x, state, err := w.Server.Admit(w.Now, [16]byte{1}, epoch, w.Client.Slots())
	if err != nil {
		return fmt.Sprintf("epoch %d is refused: %v", epoch, err)
	}
	if w.Session != nil && w.Session.live != 0 {
		w.Conns[w.Session.live-1].Broken = true
		w.lost(w.Session.live)
	}
	w.Session = x
	for len(w.Conns) < int(epoch) {
		w.Conns = append(w.Conns, conn{})
	}
	w.Conns[epoch-1].Answer = state
	x.Connected(epoch)
	w.Phase = answering
	return ""
}

func (w *world) connected() (problem string) {
	epoch := w.Client.epoch
	w.Phase = connected
	if err := w.Client.Connected(epoch, w.Conns[epoch-1].Answer, w.Session.Instance(), w.Session.Slots(), w.event); err != nil {
		return err.Error()
	}
	return ""
}

// deliver lists the possible fates of the messages of connection i+1. Messages
// that have completed are polled even when the connection is broken, or lost.
func (w *world) deliver(i int, add adder) {
	c, epoch := w.Conns[i], uint32(i+1)
	if len(c.To) > 0 {
		m := c.To[0]
		add(c.Broken, fmt.Sprintf("the server polls %v %d of slot %d from %d", m.M.Type, m.M.Sequence, m.M.Slot, epoch), func(d *world) string {
			d.Conns[i].To = d.Conns[i].To[1:]
			return d.atServer(epoch, m)
		})
	}
	if len(c.From) > 0 && (epoch < w.Client.epoch || w.Phase == connected) {
		m := c.From[0]
		add(c.Broken, fmt.Sprintf("the client polls %v %d of slot %d from %d", m.M.Type, m.M.Sequence, m.M.Slot, epoch), func(d *world) string {
			d.Conns[i].From = d.Conns[i].From[1:]
			return d.atClient(epoch, m)
		})
	}
	if c.Broken && len(c.To)+len(c.From) > 0 {
		add(false, fmt.Sprintf("the rest of connection %d is lost", epoch), func(d *world) string {
			d.Conns[i].To, d.Conns[i].From = nil, nil
			return ""
		})
	}
}
