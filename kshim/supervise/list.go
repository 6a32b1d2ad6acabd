//go:build linux && (amd64 || arm64)

package supervise

import (
	"cmp"
	"slices"
)

// Program is a process that has files of RDMA open, for a list of them.
type Program struct {
	PID     int
	Name    string
	Files   []string       // by name, "/dev/infiniband/uverbs0", in their order
	Objects map[string]int // by kind, as emu.Process.Objects names them
}

// Programs lists the programs in the order of their PIDs.
func (k *Kernel) Programs() []Program {
	all := map[*program]*Program{}
	k.owners.Range(func(_, v any) bool {
		g := v.(*program)
		all[g] = &Program{PID: g.process.pid, Name: g.process.name(), Objects: map[string]int{}}
		return true
	})
	k.mu.Lock()
	for _, f := range k.files {
		if p := all[f.program]; p != nil {
			p.Files = append(p.Files, f.path)
		}
	}
	k.mu.Unlock()
	viewer := k.config.Machine.Process("list")
	defer viewer.Exit()
	for _, d := range viewer.Devices() {
		for _, kind := range [...]string{"ctx", "pd", "cq", "qp", "srq", "mr", "mw", "ah", "cm_id"} {
			for _, o := range viewer.Objects(d, kind) {
				if g, ok := k.owners.Load(o.Owner); ok && all[g.(*program)] != nil {
					all[g.(*program)].Objects[kind]++
				}
			}
		}
	}
	var list []Program
	for _, p := range all {
		slices.Sort(p.Files)
		list = append(list, *p)
	}
	slices.SortFunc(list, func(a, b Program) int { return cmp.Compare(a.PID, b.PID) })
	return list
}
