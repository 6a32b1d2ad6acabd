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
	for i, c := range w.Conns {
		if c.Known && !c.Stood {
			add(c.Broken, fmt.Sprintf("connection %d stands at the server", i+1), func(d *world) string {
				d.stand(uint32(i + 1))
				return ""
			})
		}
		if w.Loses && c.Broken && !c.Stood {
			add(false, fmt.Sprintf("connection %d never stood", i+1), func(d *world) string {
				d.Conns[i].Stood = true
				d.Server.Leave(id)
				return ""
			})
		}
	}
	if x := w.Session; w.Loses && !w.Mixed && x != nil && !x.ended && x.live == 0 && int(c.epoch) <= w.Epochs {
		add(true, "the session's life ends", func(d *world) string {
			d.Server.Expire(1<<60, d.end)
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
	a, err := w.Server.Admit(Address{}, id, epoch, w.Client.Slots())
	if err != nil {
		return fmt.Sprintf("epoch %d is refused: %v", epoch, err)
	}
	for len(w.Conns) < int(epoch) {
		w.Conns = append(w.Conns, conn{})
	}
	w.Conns[epoch-1].Answer = a
	w.Phase = answering
	return ""
}

var id = [16]byte{1}

// stand is what the server does when it learns that the client got its REP.
func (w *world) stand(epoch uint32) {
	c := &w.Conns[epoch-1]
	c.Stood = true
	if x := w.Server.Find(id); x != nil && x.live != 0 && x.epoch < epoch {
		w.Conns[x.live-1].Broken = true
		w.lost(x.live)
	}
	x, err := w.Server.Connect(Address{}, id, epoch, w.end)
	w.Server.Leave(id)
	if err != nil {
		c.Broken = true
		return
	}
	w.Session = x
}

// end ends a session, whatever runs, and the model of its handlers.
func (w *world) end(x *Session) {
	x.End(func(Event) {})
	for slot, k := range w.Running {
		if k != 0 {
			w.Calls[k-1].Ended, w.Running[slot] = true, 0
		}
	}
	w.Reads = slices.DeleteFunc(w.Reads, func(r read) bool { return r.Server })
}

func (w *world) connected() (problem string) {
	epoch := w.Client.epoch
	w.Phase = connected
	c := &w.Conns[epoch-1]
	c.Known = true
	if err := w.Client.Connected(epoch, c.Answer.State, c.Answer.Instance, c.Answer.Slots, w.event); err != nil {
		return err.Error()
	}
	return ""
}

// deliver lists the possible fates of the messages of connection i+1. Messages
// that have completed are polled even when the connection is broken, or lost.
func (w *world) deliver(i int, add adder) {
	c, epoch := w.Conns[i], uint32(i+1)
	if len(c.To) > 0 && c.Stood && w.Session != nil {
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
