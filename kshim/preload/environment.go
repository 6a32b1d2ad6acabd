package preload

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// The variables that the stub and the library read.
const (
	envLib     = "RDMASHIM_PRELOAD_LIB"     // the library's file
	envRun     = "RDMASHIM_PRELOAD_RUN"     // the run's name
	envDevices = "RDMASHIM_PRELOAD_DEVICES" // the devices' names, a line each
)

// Build is the word by which this program, started again, builds the libraries
// in a folder of the cache.
const Build = "build-libraries"

// Sweep is the word by which this program, started again, reads the name of a
// run, waits until its standard input ends and removes the trees of processes
// that have ended.
const Sweep = "sweep-trees"

// Environment is what a program is started with.
type Environment struct {
	Run     string   // names this start of a program, for planted.Sweep
	Devices []string // names as uapi.Open takes them: "soft:127.0.0.5"
}

// FromEnvironment reads the process's own.
func FromEnvironment() Environment {
	return Environment{os.Getenv(envRun), strings.Split(os.Getenv(envDevices), "\n")}
}

// asanOrder lets programs with AddressSanitizer start, whose library demands to
// be the first: behind the stub it works as well.
const asanOrder = "verify_asan_link_order=0"

// over returns environ with this environment in it, in place of an earlier one.
// Other libraries that were to be preloaded come after the stub.
func (e *Environment) over(environ []string, l Libraries) []string {
	stub, asan := l.Stub, asanOrder
	environ = slices.DeleteFunc(slices.Clone(environ), func(v string) bool {
		name, value, _ := strings.Cut(v, "=")
		if name == "LD_PRELOAD" {
			for _, other := range strings.FieldsFunc(value, func(r rune) bool { return r == ' ' || r == ':' }) {
				if !strings.HasSuffix(other, "/"+stubFile) {
					stub += ":" + other
				}
			}
		}
		if name == "ASAN_OPTIONS" && value != asanOrder {
			asan = strings.TrimSuffix(value, ":"+asanOrder) + ":" + asanOrder
		}
		return name == "LD_PRELOAD" || name == "ASAN_OPTIONS" || name == envLib || name == envRun || name == envDevices
	})
	return append(environ, "LD_PRELOAD="+stub, "ASAN_OPTIONS="+asan, envLib+"="+l.Kernel, envRun+"="+e.Run, envDevices+"="+strings.Join(e.Devices, "\n"))
}

// CheckDevice reports why a program of C cannot have a device of that name: it
// takes soft devices.
func CheckDevice(name string) error {
	rest, ok := strings.CutPrefix(name, "soft")
	if !ok || rest != "" && rest[0] != ':' && rest[0] != '?' || strings.ContainsRune(name, '\n') {
		return fmt.Errorf("%q is no soft device: C programs have soft, soft:ADDRESS and their options; one of the kernel's needs no help", name)
	}
	return nil
}
