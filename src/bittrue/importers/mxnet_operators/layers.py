from .base import Mappers
MAPPERS: Mappers = {}
