package rpc

import (
	"fmt"
	"reflect"
	"strings"

	"google.golang.org/grpc"
)

// service is a registered implementation.
type service struct {
	impl    any
	methods map[string]*grpc.MethodDesc
	streams map[string]*grpc.StreamDesc
	info    grpc.ServiceInfo
}

// registry is the services of a server, by name. It is filled before it is
// read, and not guarded.
type registry map[string]*service

// register adds a service. Errors: a name twice, an implementation that lacks
// methods.
func (r registry) register(d *grpc.ServiceDesc, impl any) error {
	if want := reflect.TypeOf(d.HandlerType); impl != nil && want != nil && !reflect.TypeOf(impl).Implements(want.Elem()) {
		return fmt.Errorf("rpc: register %s: %T does not implement %v", d.ServiceName, impl, want.Elem())
	}
	if r[d.ServiceName] != nil {
		return fmt.Errorf("rpc: register %s: it is registered already", d.ServiceName)
	}
	s := &service{impl: impl, methods: map[string]*grpc.MethodDesc{}, streams: map[string]*grpc.StreamDesc{}}
	s.info.Metadata = d.Metadata
	for i := range d.Methods {
		m := &d.Methods[i]
		s.methods[m.MethodName] = m
		s.info.Methods = append(s.info.Methods, grpc.MethodInfo{Name: m.MethodName})
	}
	for i := range d.Streams {
		m := &d.Streams[i]
		s.streams[m.StreamName] = m
		s.info.Methods = append(s.info.Methods, grpc.MethodInfo{
			Name: m.StreamName, IsClientStream: m.ClientStreams, IsServerStream: m.ServerStreams,
		})
	}
	r[d.ServiceName] = s
	return nil
}

// find splits "/service/method". The service is nil if there is none.
func (r registry) find(full string) (s *service, method string) {
	at := strings.LastIndexByte(full, '/')
	if at < 1 || full[0] != '/' {
		return nil, full
	}
	return r[full[1:at]], full[at+1:]
}

// unknown says which of the two is not registered, the service or its method.
func (r registry) unknown(full string) string {
	s, method := r.find(full)
	name := strings.TrimPrefix(strings.TrimSuffix(full, "/"+method), "/")
	if s == nil {
		return "unknown service " + name
	}
	return fmt.Sprintf("unknown method %s of service %s", method, name)
}
