package jsonapi

import "google.golang.org/protobuf/reflect/protoreflect"

// This file maps the names that the API had before version 0.1 to the current ones. JSON accepts the former names for one release; answers
// use the current names.

// FormerCalls maps former HTTP paths to the current calls.
var FormerCalls = map[string]string{
	"/memsidecar.v1.MemoryService/ForgetUser":         "/memsidecar.v1.UserService/ForgetUser",
	"/memsidecar.v1.MemoryService/ExportUser":         "/memsidecar.v1.UserService/ExportUser",
	"/memsidecar.v1.MemoryService/GetUserSettings":    "/memsidecar.v1.UserService/GetUserSettings",
	"/memsidecar.v1.MemoryService/UpdateUserSettings": "/memsidecar.v1.UserService/UpdateUserSettings",
	"/memsidecar.v1.MemoryService/GetStatus":          "/memsidecar.v1.AdminService/GetStatus",
	"/memsidecar.v1.AuditService/AuditMemories":       "/memsidecar.v1.AdminService/AuditMemories",
	"/memsidecar.v1.ResultService/PutResults":         "/memsidecar.v1.NumberedListService/PutItems",
	"/memsidecar.v1.ResultService/SelectResult":       "/memsidecar.v1.NumberedListService/SelectItems",
	"/memsidecar.v1.ResultService/FilterUnseen":       "/memsidecar.v1.NumberedListService/FilterUnseen",
	"/memsidecar.v1.ResultService/ListItems":          "/memsidecar.v1.NumberedListService/ListItems",
	"/memsidecar.v1.ResultService/GetResultList":      "/memsidecar.v1.NumberedListService/GetNumberedList",
	"/memsidecar.v1.ResultService/DeleteResultList":   "/memsidecar.v1.NumberedListService/DeleteNumberedList",
	"/memsidecar.v1.ResultService/ImportResults":      "/memsidecar.v1.NumberedListService/ImportNumberedList",
}

// FormerTools maps former names of MCP tools to the current ones.
var FormerTools = map[string]string{
	"put_results":   "put_numbered_list",
	"select_result": "select_from_numbered_list",
}

// formerFields maps former field names to the current ones, by message.
var formerFields = map[protoreflect.FullName]map[protoreflect.Name]protoreflect.Name{
	"memsidecar.v1.RetrieveRequest": {
		"min_score":      "min_relevance",
		"created_after":  "created_after_time",
		"created_before": "created_before_time",
	},
	"memsidecar.v1.Message":  {"time": "send_time"},
	"memsidecar.v1.ToolCall": {"time": "start_time"},
	"memsidecar.v1.Memory":   {"valid_from": "valid_start_time", "valid_to": "valid_end_time"},
}

// formerPrefixes are the former prefixes of enum values.
var formerPrefixes = map[protoreflect.FullName]string{
	"memsidecar.v1.RegistryKind":     "RESULT_REGISTRY_KIND_",
	"memsidecar.v1.NumberedListPart": "RESULT_LIST_PART_",
}
