package stats

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzRequest: whatever a client sends is answered by one line of JSON, with readings or with an error.
func FuzzRequest(f *testing.F) {
	for _, s := range []string{`{"version":1,"op":"read"}`, `{"version":2,"op":"read","more":[]}`, `{"version":0}`, `[]`, ``, "\x00", `{"version":1e99}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		err := checkRequest(line)
		if err == nil {
			var r request
			if e := json.Unmarshal(line, &r); e != nil || r.Version < Version || r.Op != opRead {
				t.Fatalf("%q passed", line)
			}
			return
		}
		if text := err.Error(); len(text) > 200 {
			t.Fatalf("%q is answered with %d bytes", line, len(text))
		}
	})
}

// FuzzAnswer: whatever a process answers, what is taken of it can be shown and written.
func FuzzAnswer(f *testing.F) {
	good, _ := json.Marshal(Answer{Version: Version, PID: 1, Devices: []Device{example()}})
	f.Add(append(good, '\n'))
	for _, s := range []string{`{"version":1,"error":"no"}`, `{"version":1,"devices":[{"ports":[{"counters":{"drop_x":1}}]}]}`, `{"version":9}`, `null`, ``} {
		f.Add([]byte(s + "\n"))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		a, err := readAnswer(bytes.NewReader(text))
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := WritePrometheus(&b, a.Devices); err != nil {
			t.Fatal(err)
		}
		for _, d := range a.Devices {
			if d.Name != clean(d.Name) {
				t.Fatalf("%q is not clean", d.Name)
			}
			for _, p := range d.Ports {
				p.Counters.Summarize()
				p.Counters.Drops()
			}
		}
	})
}
