package msgring

import (
	"runtime"
	"sync"
	"weak"

	"github.com/rdmashim/rdmashim/uapi"
)

// facts are what connections need to know of their device, and what stays as it
// is as long as the device. QueryDevice looks at the port and its 1024 GIDs.
type facts struct {
	kind       uapi.Kind
	maxMessage uint64 // bytes
	kits       *kits
}

// known has the facts of devices that are in use, by weak.Pointer.
var known sync.Map

// factsOf returns a device's facts. Errors are those of QueryDevice, the first
// time.
func factsOf(device *uapi.Device) (facts, error) {
	key := weak.Make(device)
	if f, ok := known.Load(key); ok {
		return f.(facts), nil
	}
	info, err := device.QueryDevice()
	if err != nil {
		return facts{}, err
	}
	f := facts{kind: info.Kind, maxMessage: info.MaxMessage, kits: new(kits)}
	first, before := known.LoadOrStore(key, f)
	if !before {
		runtime.AddCleanup(device, func(key weak.Pointer[uapi.Device]) { known.Delete(key) }, key)
	}
	return first.(facts), nil
}
