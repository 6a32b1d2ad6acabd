package shm

// died ends a life: SetGone's function runs, which takes what lies in the ring
// from there first; then the rings go. A second caller waits for the first.
func (l *Link) died(d *device) {
	l.mu.Lock()
	closed := l.closed
	if !closed && l.devices[d.addr] == d {
		delete(l.devices, d.addr)
	}
	l.mu.Unlock()
	if closed {
		return // Close takes the rings, and no peer has died
	}
	d.end.Do(func() {
		l.count.Deaths.Add(1)
		if f := l.gone.Load(); f != nil {
			(*f)(d.id)
		}
	})
	l.tx.Lock()
	l.leaveOut(d)
	l.tx.Unlock()
	l.rx.Lock()
	if d.in != nil {
		d.in.hang() // this device may be the one that gave the other up
	}
	l.leaveIn(d)
	l.rx.Unlock()
	l.Interrupt() // a Recv unmaps what is in use still
}

// giveUpRing leaves the ring to a device that does not read it any more, and
// does not ask for another.
func (l *Link) giveUpRing(d *device) {
	l.tx.Lock()
	defer l.tx.Unlock()
	l.leaveOut(d)
	d.givenUp = true
}

// countBroken counts and logs that a living peer broke the rules of a ring.
func (l *Link) countBroken(d *device, err error) {
	l.count.Broken.Add(1)
	l.warn("broken", "a device broke the rules of shared memory, it is reached by UDP", "device", d.addr, "err", err)
}
