package emu

// Resources lists the objects of one open device file, as rdma resource shows
// them of a process.
type Resources struct {
	Device, Process    string
	PD, CQ, QP, MR, AH int
}

// Resources lists the open device files, by device.
func (m *Machine) Resources() []Resources {
	var list []Resources
	for _, d := range m.list() {
		d.mu.Lock()
		for f := range d.files {
			count := func(k kind) int { return len(f.handles.all(k)) }
			list = append(list, Resources{
				Device: d.name, Process: f.proc.name,
				PD: count(kindPD), CQ: count(kindCQ), QP: count(kindQP), MR: count(kindMR), AH: count(kindAH),
			})
		}
		d.mu.Unlock()
	}
	return list
}
