"""Names of plug-ins that Rally has or had, for error messages if they are not installed."""

from __future__ import annotations

#: The last published release of rally-openstack; it does not have `NEWER` yet.
PUBLISHED = "4.1.0"

#: Scenarios of rally and rally-openstack: groups, each with the names in it.
SCENARIOS = """
Authenticate: keystone validate_ceilometer validate_cinder validate_glance validate_heat
  validate_neutron validate_nova validate_octavia
BarbicanContainers: create_and_add create_and_delete create_certificate_and_delete
  create_rsa_and_delete list
BarbicanOrders: create_asymmetric_and_delete create_certificate_and_delete create_key_and_delete
  list
BarbicanSecrets: create create_and_delete create_and_get create_and_list
  create_symmetric_and_delete get list
CinderQos: create_and_get_qos create_and_list_qos create_and_set_qos
  create_qos_associate_and_disassociate_type
CinderVolumeBackups: create_incremental_volume_backup
CinderVolumeTypes: create_and_delete_encryption_type create_and_delete_volume_type
  create_and_get_volume_type create_and_list_encryption_type create_and_list_volume_types
  create_and_set_volume_type_keys create_and_update_encryption_type
  create_and_update_volume_type create_get_and_delete_encryption_type
  create_volume_type_add_and_list_type_access create_volume_type_and_encryption_type
CinderVolumes: create_and_accept_transfer create_and_attach_volume create_and_delete_snapshot
  create_and_delete_volume create_and_extend_volume create_and_get_volume
  create_and_list_snapshots create_and_list_volume create_and_list_volume_backups
  create_and_restore_volume_backup create_and_update_volume create_and_upload_volume_to_image
  create_from_volume_and_delete_volume create_nested_snapshots_and_attach_volume
  create_snapshot_and_attach_volume create_volume create_volume_and_clone
  create_volume_and_update_readonly_flag create_volume_backup create_volume_from_snapshot
  list_transfers list_types list_volumes modify_volume_metadata
DesignateBasic: create_and_delete_recordsets create_and_delete_zone create_and_list_recordsets
  create_and_list_zones list_recordsets list_zones
Dummy: dummy dummy_exception dummy_exception_probability dummy_output dummy_random_action
  dummy_random_fail_in_atomic dummy_timed_atomic_actions failure openstack
ElasticsearchLogging: log_instance
GlanceImages: create_and_deactivate_image create_and_delete_image create_and_download_image
  create_and_get_image create_and_list_image create_and_update_image
  create_image_and_boot_instances import_and_delete_image list_images
Gnocchi: get_status list_capabilities
GnocchiArchivePolicy: create_archive_policy create_delete_archive_policy list_archive_policy
GnocchiArchivePolicyRule: create_archive_policy_rule create_delete_archive_policy_rule
  list_archive_policy_rule
GnocchiMetric: create_delete_metric create_metric list_metric
GnocchiResource: create_delete_resource create_resource
GnocchiResourceType: create_delete_resource_type create_resource_type list_resource_type
GrafanaMetrics: push_metric_from_instance push_metric_locally
HeatStacks: create_and_delete_stack create_and_list_stack create_check_delete_stack
  create_snapshot_restore_delete_stack create_stack_and_list_output
  create_stack_and_list_output_via_API create_stack_and_scale create_stack_and_show_output
  create_stack_and_show_output_via_API create_suspend_resume_delete_stack
  create_update_delete_stack list_stacks_and_events list_stacks_and_resources
HttpRequests: check_random_request check_request
IronicNodes: create_and_delete_node create_and_list_node
K8sPods: create_pods create_rcs list_pods
KeystoneBasic: add_and_remove_user_role authenticate_user_and_validate_token
  create_add_and_list_user_roles create_and_delete_ec2credential create_and_delete_role
  create_and_delete_service create_and_get_role create_and_list_ec2credentials
  create_and_list_roles create_and_list_services create_and_list_tenants create_and_list_users
  create_and_update_user create_delete_user create_tenant create_tenant_with_users
  create_update_and_delete_tenant create_user create_user_set_enabled_and_delete
  create_user_update_password get_entities
MagnumClusterTemplates: list_cluster_templates
MagnumClusters: create_and_list_clusters list_clusters
ManilaShares: attach_security_service_to_share_network create_and_delete_share
  create_and_extend_share create_and_list_share create_and_shrink_share
  create_security_service_and_delete create_share_and_access_from_vm
  create_share_network_and_delete create_share_network_and_list
  create_share_then_allow_and_deny_access list_share_servers list_shares set_and_delete_metadata
MistralExecutions: create_execution_from_workbook list_executions
MistralWorkbooks: create_workbook list_workbooks
NeutronBGPVPN: create_and_delete_bgpvpns create_and_list_bgpvpns
  create_and_list_networks_associations create_and_list_routers_associations
  create_and_update_bgpvpns create_bgpvpn_assoc_disassoc_networks
  create_bgpvpn_assoc_disassoc_routers
NeutronFWaaS: create_and_delete_firewall_groups create_and_delete_firewall_policies
  create_and_delete_firewall_rules create_and_list_firewall_groups
  create_and_list_firewall_policies create_and_list_firewall_rules
  create_and_update_firewall_groups create_and_update_firewall_policies
  create_and_update_firewall_rules create_policy_add_and_remove_rules
NeutronLoadbalancerV1: create_and_delete_healthmonitors create_and_delete_pools
  create_and_delete_vips create_and_list_healthmonitors create_and_list_pools
  create_and_list_vips create_and_update_healthmonitors create_and_update_pools
  create_and_update_vips
NeutronLoadbalancerV2: create_and_list_loadbalancers
NeutronNetworks: associate_and_dissociate_floating_ips create_and_bind_ports
  create_and_delete_floating_ips create_and_delete_networks create_and_delete_ports
  create_and_delete_routers create_and_delete_subnets create_and_list_floating_ips
  create_and_list_networks create_and_list_ports create_and_list_routers create_and_list_subnets
  create_and_show_network create_and_show_ports create_and_show_routers create_and_show_subnets
  create_and_update_networks create_and_update_ports create_and_update_routers
  create_and_update_subnets list_agents set_and_clear_router_gateway
NeutronSecurityGroup: create_and_delete_security_group_rule create_and_delete_security_groups
  create_and_list_security_group_rules create_and_list_security_groups
  create_and_show_security_group create_and_show_security_group_rule
  create_and_update_security_groups
NeutronSubnets: delete_subnets
NeutronTrunks: boot_server_and_add_subports boot_server_and_batch_add_subports
  boot_server_with_subports create_and_list_trunks
NovaAggregates: create_aggregate_add_and_remove_host create_aggregate_add_host_and_boot_server
  create_and_delete_aggregate create_and_get_aggregate_details create_and_list_aggregates
  create_and_update_aggregate list_aggregates
NovaAvailabilityZones: list_availability_zones
NovaFlavors: create_and_delete_flavor create_and_get_flavor create_and_list_flavor_access
  create_flavor create_flavor_and_add_tenant_access create_flavor_and_set_keys list_flavors
NovaHypervisors: list_and_get_hypervisors list_and_get_uptime_hypervisors
  list_and_search_hypervisors list_hypervisors statistics_hypervisors
NovaKeypair: boot_and_delete_server_with_keypair create_and_delete_keypair
  create_and_get_keypair create_and_list_keypairs
NovaServerGroups: create_and_delete_server_group create_and_get_server_group
  create_and_list_server_groups
NovaServers: boot_and_associate_floating_ip boot_and_bounce_server
  boot_and_delete_multiple_servers boot_and_delete_server boot_and_get_console_output
  boot_and_get_console_url boot_and_list_server boot_and_live_migrate_server
  boot_and_migrate_server boot_and_rebuild_server boot_and_show_server boot_and_update_server
  boot_lock_unlock_and_delete boot_server boot_server_and_attach_interface
  boot_server_and_list_interfaces boot_server_associate_and_dissociate_floating_ip
  boot_server_attach_created_volume_and_extend
  boot_server_attach_created_volume_and_live_migrate
  boot_server_attach_created_volume_and_resize boot_server_attach_volume_and_list_attachments
  boot_server_from_volume boot_server_from_volume_and_delete
  boot_server_from_volume_and_live_migrate boot_server_from_volume_and_resize
  boot_server_from_volume_snapshot list_servers pause_and_unpause_server resize_server
  resize_shutoff_server shelve_and_unshelve_server snapshot_server suspend_and_resume_server
NovaServices: list_services
Octavia: create_and_delete_loadbalancers create_and_delete_pools create_and_list_loadbalancers
  create_and_list_pools create_and_show_loadbalancers create_and_show_pools
  create_and_stats_loadbalancers create_and_update_loadbalancers create_and_update_pools
Quotas: cinder_get cinder_update cinder_update_and_delete neutron_update nova_get nova_update
  nova_update_and_delete
SwiftObjects: create_container_and_object_then_delete_all
  create_container_and_object_then_download_object create_container_and_object_then_list_objects
  list_and_download_objects_in_containers list_objects_in_containers
VMTasks: boot_runcommand_delete check_designate_dns_resolving dd_load_test runcommand_heat
Watcher: create_audit_and_delete create_audit_template_and_delete list_audit_templates
ZaqarBasic: create_queue producer_consumer
"""

#: Groups of scenarios that are newer than the release `PUBLISHED`.
NEWER = ("NeutronFWaaS",)

#: Contexts with their platforms.
CONTEXTS = """
admin_cleanup@openstack allow_ssh@openstack api_versions@openstack audit_templates@openstack
ca_certs@openstack cleanup@openstack cluster_templates@openstack clusters@openstack
dummy_context@default existing_network@openstack flavors@openstack heat_dataplane@openstack
image_command_customizer@openstack images@openstack keypair@openstack lbaas@openstack
manila_security_services@openstack manila_share_networks@openstack manila_shares@openstack
network@openstack networking_agents@openstack quotas@openstack roles@openstack router@openstack
servers@openstack stacks@openstack swift_objects@openstack users@openstack
volume_types@openstack volumes@openstack zones@openstack
"""

#: Other plug-ins by kind.
OTHERS = {
    "sla": "failure_rate@default max_avg_duration@default max_avg_duration_per_atomic@default"
    " max_seconds_per_iteration@default outliers@default performance_degradation@default",
    "hook": "fault_injection@openstack sys_call@default",
    "trigger": "event@default periodic@default",
    "runner": "constant@default constant_for_duration@default rps@default serial@default",
    "exporter": "elastic@default html-static@default html@default json@default junit-xml@default"
    " old-json-results@default trends-html@default trends-html-static@default",
}

#: Scenarios that Rally dropped, by the first release without them. Rally itself had the plug-ins
#: for OpenStack before 1.0.0.
REMOVED_SCENARIOS = {
    "rally 0.0.4": """
Requests: check_response
""",
    "rally 0.7.0": """
Dummy: dummy_with_scenario_output
NovaFloatingIpsBulk: create_and_delete_floating_ips_bulk create_and_list_floating_ips_bulk
""",
    "rally 0.8.0": """
TempestScenario: all list_of_tests set single_test specific_regex
""",
    "rally 0.9.0": """
VMTasks: boot_runcommand_delete_custom_image
""",
    "rally 0.10.0": """
FuelEnvironments: create_and_delete_environment create_and_list_environments
FuelNodes: add_and_remove_node
NovaNetworks: create_and_delete_network create_and_list_networks
NovaSecGroup: boot_and_delete_server_with_secgroups boot_server_and_add_secgroups
  create_and_delete_secgroups create_and_list_secgroups create_and_update_secgroups
""",
    "rally 0.11.2": """
NovaHosts: list_and_get_hosts list_hosts
""",
    "rally 1.0.0": """
NovaImages: list_images
""",
    "rally-openstack 2.0.0": """
EC2Servers: boot_server list_servers
""",
    "rally-openstack 2.1.0": """
DesignateBasic: create_and_delete_domain create_and_delete_records create_and_delete_server
  create_and_list_domains create_and_list_records create_and_list_servers
  create_and_update_domain list_domains list_records list_servers
""",
    "rally-openstack 2.2.0": """
CeilometerAlarms: create_alarm create_alarm_and_get_history create_and_delete_alarm
  create_and_get_alarm create_and_list_alarm create_and_update_alarm list_alarms
CeilometerEvents: create_user_and_get_event create_user_and_list_event_types
  create_user_and_list_events
CeilometerMeters: list_matched_meters list_meters
CeilometerQueries: create_and_query_alarm_history create_and_query_alarms
  create_and_query_samples
CeilometerResource: get_tenant_resources list_matched_resources list_resources
CeilometerSamples: list_matched_samples list_samples
CeilometerStats: create_meter_and_get_stats get_stats
CeilometerTraits: create_user_and_list_trait_descriptions create_user_and_list_traits
""",
    "rally-openstack 2.3.0": """
NovaAgents: list_agents
""",
    "rally-openstack 4.0.0": """
Authenticate: validate_monasca
MonascaMetrics: list_metrics
MuranoEnvironments: create_and_delete_environment create_and_deploy_environment
  list_environments
MuranoPackages: import_and_delete_package import_and_filter_applications
  import_and_list_packages package_lifecycle
SaharaClusters: create_and_delete_cluster create_scale_delete_cluster
SaharaJob: create_launch_job create_launch_job_sequence create_launch_job_sequence_with_scaling
SaharaNodeGroupTemplates: create_and_list_node_group_templates
  create_delete_node_group_templates
SenlinClusters: create_and_delete_cluster
""",
}

#: Contexts that Rally dropped, by the first release without them.
REMOVED_CONTEXTS = {
    "rally 0.1.2": "sahara_edp",
    "rally 0.10.0": "existing_users fuel_environments",
    "rally 1.0.0": "tempest",
    "rally-openstack 2.0.0": "ec2_servers",
    "rally-openstack 2.2.0": "ceilometer",
    "rally-openstack 4.0.0": "monasca_metrics murano_environments murano_packages profiles"
    " sahara_cluster sahara_image sahara_input_data_sources sahara_job_binaries"
    " sahara_output_data_sources",
}
