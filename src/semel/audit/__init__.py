"""Checks exactly-once claims, ours and others', on any Kafka.

`WorkloadAudit` runs transactions under kills and judges what is left of them. `TopicAudit` reads
topics that exist. Both give a `AuditReport`: for people (`as_text`, `as_page`) and for programs
(`AuditReport.as_dict`).
"""

from semel.audit.findings import Anomaly as Anomaly
from semel.audit.findings import AuditReport as AuditReport
from semel.audit.findings import Finding as Finding
from semel.audit.findings import Findings as Findings
from semel.audit.page import as_page as as_page
from semel.audit.text import as_text as as_text
from semel.audit.topics import TopicAudit as TopicAudit
from semel.audit.workload import WorkloadAudit as WorkloadAudit
from semel.audit.workload import WorkloadPlan as WorkloadPlan
