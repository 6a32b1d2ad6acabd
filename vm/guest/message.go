package guest

import "encoding/json"

// Hello is the guest's first frame.
type Hello struct{ Version int }

// Setup describes the guest's preparation before it runs anything.
type Setup struct {
	Node     int      // from 0
	Hostname string   //
	Load     []string // modules to load
	Netdev   string   // netdev for rxe0; when it does not exist, one end of a veth pair of that name
	Address  string   // the netdev's address, as 192.0.2.1/24; empty: none
	Link     string   // name of the rxe link; empty: make none
	Env      []string
}

// Exec is a command to run. Args[0] is looked up on PATH.
type Exec struct {
	Args Words
	Env  Words  // added to the guest's
	Dir  string // made when it does not exist; empty: /
	// Stdin says whether standard input will be sent; without it, it is empty.
	Stdin bool
}

// Words are strings of any bytes; those of JSON are UTF-8.
type Words []string

func (w Words) MarshalJSON() ([]byte, error) {
	list := make([][]byte, len(w))
	for i, s := range w {
		list[i] = []byte(s)
	}
	return json.Marshal(list)
}

func (w *Words) UnmarshalJSON(text []byte) error {
	var list [][]byte
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	*w = make(Words, len(list))
	for i, b := range list {
		(*w)[i] = string(b)
	}
	return nil
}

// Push asks the guest to unpack a tar under a directory.
type Push struct{ Dir string }

// Pull asks the guest for a tar of a directory's files.
type Pull struct{ Dir string }

// Done answers Setup, Exec, Push and Pull.
type Done struct {
	Error    string `json:",omitempty"` // the failure, empty for a command that ran
	NotFound bool   `json:",omitempty"` // Exec: there is no such command
	Code     int    `json:",omitempty"` // Exec: exit status
	Signal   int    `json:",omitempty"` // Exec: the signal that ended it
	Link     string `json:",omitempty"` // Setup: the rxe link that is up
	Steps    []string
}

// OutDir is the guest's directory for files that go back to the host.
const OutDir = "/out"

// ImageMark is a file that every image holds.
const ImageMark = "etc/rdmashim-guest"
