package peer

import (
	"encoding/json"
	"fmt"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/uapi"
)

// version changes when a message of the control connection does.
const version = 2

// Hello is the client's first message. Params are the job's.
type Hello struct {
	Version int             `json:"version"`
	Job     string          `json:"job"`
	Params  json.RawMessage `json:"params"`
}

// NewHello is the hello for a job.
func NewHello(job string, params any) (Hello, error) {
	b, err := json.Marshal(params)
	return Hello{version, job, b}, err
}

// Welcome answers it; a refusal carries the reason.
type Welcome struct {
	PID    int    `json:"pid"`
	Device Side   `json:"device"`
	Error  string `json:"error,omitempty"`
}

// Side describes one end's device: what was chosen, and why. Its JSON keys are
// stable.
type Side struct {
	Device  string `json:"device"`
	Address string `json:"address"`
	GID     string `json:"gid"`
	MTU     int    `json:"mtu"`
	Note    string `json:"note,omitempty"`
}

// printable makes a peer's description fit for a terminal.
func (s *Side) printable() {
	for _, text := range []*string{&s.Device, &s.Address, &s.GID, &s.Note} {
		*text = cli.Printable(*text)
	}
}

// describe describes the opened device and the choices.
func describe(d *uapi.Device) (Side, error) {
	info, err := d.QueryDevice()
	if err != nil {
		return Side{}, err
	}
	s := Side{Device: info.Device, MTU: info.MTU}
	if len(info.GIDs) > 1 {
		s.Note = info.GIDReason
	}
	if info.Address.IsValid() {
		s.Address = info.Address.String()
	}
	for _, g := range info.GIDs {
		if g.Index == info.GIDIndex {
			s.GID = fmt.Sprintf("%d (%s, %s)", g.Index, g.Addr, g.Type)
		}
	}
	return s, nil
}
