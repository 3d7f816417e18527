package api

import (
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/role"
)

// machinePrefix begins the full name of every method of the machine service.
const machinePrefix = "/" + "machine.MachineService" + "/"

// rule says who may call a method that cozynode implements.
type rule struct {
	roles role.Set
	// maintenance allows the method to anyone while the node has no config.
	maintenance bool
}

// rules returns the rules of the methods implemented, by full method name. The roles are those that Talos demands for
// the same methods. Administrators may call everything.
func rules() map[string]rule {
	readers := role.MakeSet(role.Admin, role.Operator, role.Reader)
	etcdReaders := role.MakeSet(role.Admin, role.Operator, role.Reader, role.EtcdBackup)
	operators := role.MakeSet(role.Admin, role.Operator)
	admins := role.MakeSet(role.Admin)

	return map[string]rule{
		machine.MachineService_Version_FullMethodName:            {roles: readers, maintenance: true},
		machine.MachineService_Hostname_FullMethodName:           {roles: readers, maintenance: true},
		machine.MachineService_ApplyConfiguration_FullMethodName: {roles: admins, maintenance: true},
		machine.MachineService_Dmesg_FullMethodName:              {roles: readers, maintenance: true},
		machine.MachineService_Events_FullMethodName:             {roles: readers, maintenance: true},
		machine.MachineService_Bootstrap_FullMethodName:          {roles: admins},
		machine.MachineService_ServiceList_FullMethodName:        {roles: readers},
		machine.MachineService_ServiceStart_FullMethodName:       {roles: operators},
		machine.MachineService_ServiceStop_FullMethodName:        {roles: operators},
		machine.MachineService_ServiceRestart_FullMethodName:     {roles: operators},
		machine.MachineService_Logs_FullMethodName:               {roles: readers},
		machine.MachineService_LogsContainers_FullMethodName:     {roles: readers},
		machine.MachineService_EtcdMemberList_FullMethodName:     {roles: etcdReaders},
		machine.MachineService_EtcdStatus_FullMethodName:         {roles: etcdReaders},
		machine.MachineService_Kubeconfig_FullMethodName:         {roles: admins},
		machine.MachineService_Reboot_FullMethodName:             {roles: operators},
		machine.MachineService_Shutdown_FullMethodName:           {roles: operators},
		machine.MachineService_Reset_FullMethodName:              {roles: admins},
	}
}

// streamed reports whether a method of the machine service answers with a stream.
func streamed(method string) bool {
	name, ok := strings.CutPrefix(method, machinePrefix)
	if !ok {
		return false
	}
	for _, stream := range machine.MachineService_ServiceDesc.Streams {
		if stream.StreamName == name {
			return true
		}
	}
	return false
}
